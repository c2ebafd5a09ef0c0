/** Changes the log as only a superuser can: switches the protections off, changes the log, and switches the protections on again. */
import { Effect } from "effect"
import { execute } from "#test/support/MigratedDatabase.ts"

const protectedTables = ["events_p0", "tiles", "checkpoints", "personal_documents"]

/** Runs the statements in one transaction with all triggers off. */
export const tamper = (...statements: ReadonlyArray<string>) => {
  const alter = (what: string) =>
    protectedTables.map(
      (table) => `ALTER TABLE vatproof.${table} ${what} TRIGGER append_only, ${what} TRIGGER append_only_truncate;`
    )
  const body = [
    "SET LOCAL event_triggers = off;",
    ...alter("DISABLE"),
    ...statements.map((statement) => `${statement};`),
    ...alter("ENABLE ALWAYS")
  ]
  return Effect.asVoid(execute(`DO $tamper$ BEGIN ${body.join("\n")} END $tamper$`))
}
