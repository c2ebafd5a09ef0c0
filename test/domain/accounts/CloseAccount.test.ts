import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { evolve, noAccount } from "#domain/accounts/Account.ts"
import { AccountClosed, AccountSignedUp } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyIssued, ApiKeyRevoked } from "#domain/accounts/ApiKeyEvents.ts"
import { decide } from "#domain/accounts/CloseAccount.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

const account_id = "019371c0-5f00-7000-8000-0000000000ac"
const at = DateTime.makeUnsafe("2026-11-21T13:05:00Z")

const signedUp = AccountSignedUp.make({ account_id, plan: "free" })
const issued = (prefix: string) => ApiKeyIssued.make({ account_id, key_id: `key ${prefix}`, prefix, key_sha256: "00" })
const revoked = (prefix: string, by: "owner" | "operator") =>
  ApiKeyRevoked.make({ account_id, key_id: `key ${prefix}`, prefix, by })
const closed = AccountClosed.make({ account_id })

const cases: ReadonlyArray<readonly [string, ReadonlyArray<DomainEvent>, ReadonlyArray<DomainEvent>]> = [
  ["closes an account without keys", [signedUp], [closed]],
  [
    "revokes every active key, then closes the account",
    [signedUp, issued("a"), issued("b"), issued("c"), revoked("b", "owner")],
    [revoked("a", "operator"), revoked("c", "operator"), closed]
  ]
]

describe("CloseAccount", () => {
  it.each(cases)("%s", (_, given, then) => {
    const state = given.reduce((before, event) => evolve(before, event, at), noAccount(account_id))
    assert.deepStrictEqual(decide(state), then)
    assert.isTrue(then.reduce((before, event) => evolve(before, event, at), state).closed)
  })
})
