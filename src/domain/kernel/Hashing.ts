/** One-way functions the rules ask for; the cryptography itself is infra's. */
import { Context } from "effect"

export class Hashing extends Context.Service<
  Hashing,
  {
    /** SHA-256 of the bytes, or of the UTF-8 form of a text, as 64 hex digits. */
    readonly sha256: (content: string | Uint8Array) => string
    /** HMAC-SHA-256 of the UTF-8 form under a key, as 64 hex digits. */
    readonly keyed: (key: Uint8Array, text: string) => string
  }
>()("vatproof/domain/kernel/Hashing") {}
