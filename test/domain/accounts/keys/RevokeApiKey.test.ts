import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { revokeKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { given, issued, refusal, revoked, signedUp, verified } from "#test/support/AccountHistory.ts"

describe("revoking an API key", () => {
  it("records one event", () => {
    const decided = revokeKey(given(signedUp, verified, issued("svc_live_aaa")), "svc_live_aaa", "owner")
    assert.deepStrictEqual(Result.getOrThrow(decided), [revoked("svc_live_aaa")[0]])
  })

  it("records no second event if the key is revoked already", () => {
    const decided = revokeKey(given(signedUp, verified, issued("svc_live_aaa"), revoked("svc_live_aaa")), "svc_live_aaa", "owner")
    assert.deepStrictEqual(Result.getOrThrow(decided), [])
  })

  it("is rejected for a prefix that the account never had", () => {
    assert.strictEqual(
      refusal(revokeKey(given(signedUp, verified, issued("svc_live_aaa")), "svc_live_bbb", "owner")),
      "ApiKeyNotFound"
    )
  })
})
