/** Whether the disk of the database is full: true from a statement that failed for this reason until the next append. */
import { Context, MutableRef } from "effect"

export const DatabaseFull = Context.Reference("vatproof/domain/kernel/DatabaseFull", {
  defaultValue: () => MutableRef.make(false)
})
