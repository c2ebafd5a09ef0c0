/** A hash with a secret of this installation: for client addresses, and for signatures that only the service verifies. */
import { Context } from "effect"

export class KeyedHash extends Context.Service<
  KeyedHash,
  {
    /** Returns the HMAC-SHA-256 as 64 hex digits, the same on every replica. The hashes of different purposes are unrelated. */
    readonly of: (
      purpose: "address" | "agent" | "cursor" | "email" | "idempotency" | "receipt-link" | "reference" | "registration",
      text: string
    ) => string
  }
>()("vatproof/domain/kernel/KeyedHash") {}
