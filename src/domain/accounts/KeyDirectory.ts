/** The keys of an account as people see them. */
import { Context, type DateTime, type Effect } from "effect"
import { plainText } from "#domain/kernel/PlainText.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** What people may call a key. */
export const KeyLabel = plainText({ min: 0, max: 100 })

/** `label` is what its owner calls it, "" if nothing. */
export interface ListedKey {
  readonly prefix: string
  readonly label: string
  readonly issuedAt: DateTime.Utc
  readonly revoked: boolean
}

export class KeyDirectory extends Context.Service<
  KeyDirectory,
  {
    /** All keys of an account, revoked ones too, newest first. */
    readonly list: (accountId: string) => Effect.Effect<ReadonlyArray<ListedKey>, StoreUnavailable>
    /** Joins the transaction of its caller. */
    readonly label: (key: {
      readonly accountId: string
      readonly keyId: string
      readonly label: string
    }) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/KeyDirectory") {}
