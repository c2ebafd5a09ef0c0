/** A hash that only this installation can make: for client addresses and for signatures that nobody else has to check. */
import { Context } from "effect"

export class KeyedHash extends Context.Service<
  KeyedHash,
  {
    /** HMAC-SHA-256 as 64 hex digits, the same on every replica. Texts of different purposes have unrelated hashes. */
    readonly of: (purpose: "address" | "agent" | "cursor" | "email" | "receipt-link", text: string) => string
  }
>()("vatproof/domain/kernel/KeyedHash") {}
