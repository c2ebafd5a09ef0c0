/** Lists the API keys of an account with their owner's labels. */
import { Context, type DateTime, type Effect } from "effect"
import { plainText } from "#domain/text/PlainText.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The owner's name for a key. */
export const KeyLabel = plainText({ min: 0, max: 100 })

/** `label` is the owner's name for the key, "" without a label. */
export interface ListedKey {
  readonly prefix: string
  readonly label: string
  readonly issuedAt: DateTime.Utc
  readonly revoked: boolean
}

export class ApiKeyList extends Context.Service<
  ApiKeyList,
  {
    /** Returns all keys of an account, including revoked ones, newest first. */
    readonly all: (accountId: string) => Effect.Effect<ReadonlyArray<ListedKey>, StoreUnavailable>
    /** Stores the label of a key. Joins the caller's transaction. */
    readonly label: (key: {
      readonly accountId: string
      readonly keyId: string
      readonly label: string
    }) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/keys/ApiKeyList") {}
