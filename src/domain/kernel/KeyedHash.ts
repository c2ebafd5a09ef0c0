/** Hashes texts such as client addresses with a secret key of this installation. A hash is also a signature that only the service can verify. */
import { Context } from "effect"

export class KeyedHash extends Context.Service<
  KeyedHash,
  {
    /**
     * Returns the HMAC-SHA-256 as 64 hex digits, which is the same on every replica. The same text has a different hash for each
     * purpose.
     */
    readonly of: (
      purpose:
        | "address"
        | "agent"
        | "bzst"
        | "cursor"
        | "email"
        | "idempotency"
        | "mail"
        | "receipt-link"
        | "reference"
        | "registration",
      text: string
    ) => string
  }
>()("vatproof/domain/kernel/KeyedHash") {}
