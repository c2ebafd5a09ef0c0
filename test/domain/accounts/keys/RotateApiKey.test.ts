import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { ApiKeyRotated } from "#domain/accounts/ApiKeyEvents.ts"
import { rotateKey } from "#domain/accounts/keys/RotateApiKey.ts"
import {
  account_id,
  after,
  candidate,
  given,
  issued,
  prefixes,
  refusal,
  registered,
  revoked,
  start,
  type Happened
} from "#test/support/AccountHistory.ts"

const rotated = (prefix: string, to: string, at = start): Happened => [
  ApiKeyRotated.make({ account_id, key_id: `key ${prefix}`, prefix: to, key_sha256: "22", previous_until: null }),
  at
]

describe("rotating an API key", () => {
  const rotate = (state: ReturnType<typeof given>, keepsFormer = true, prefix = "svc_live_new", current = "svc_live_aaa") =>
    rotateKey(state, { prefix: current, candidates: [candidate(prefix)], keepsFormer, now: start })
  const facts = { account_id, key_id: "key svc_live_aaa", prefix: "svc_live_new", key_sha256: "11" }

  it("records when the old secret expires: after 24 hours or at once", () => {
    const state = given(registered, issued("svc_live_aaa"))
    const kept = Result.getOrThrow(rotate(state))
    assert.deepStrictEqual(kept?.event, ApiKeyRotated.make({ ...facts, previous_until: after("24 hours") }))
    const ended = Result.getOrThrow(rotate(state, false))
    assert.deepStrictEqual(ended?.event, ApiKeyRotated.make({ ...facts, previous_until: null }))
  })

  it("does not reuse a prefix that a key of the account had before a rotation", () => {
    const state = given(registered, issued("svc_live_aaa"), rotated("svc_live_aaa", "svc_live_bbb"))
    for (const prefix of ["svc_live_aaa", "svc_live_bbb"])
      assert.isNull(Result.getOrThrow(rotate(state, true, prefix, "svc_live_bbb")))
  })

  it("needs the current secret", () => {
    const state = given(registered, issued("svc_live_aaa"), rotated("svc_live_aaa", "svc_live_bbb"))
    assert.strictEqual(refusal(rotate(state)), "ApiKeyReplaced")
    assert.strictEqual(refusal(rotate(state, true, "svc_live_new", "svc_live_bbb")), "accepted")
  })

  it("counts towards the limit on new keys in a month, and is rejected for a revoked key", () => {
    const rotations = prefixes(49).map((prefix) => rotated("svc_live_aaa", prefix))
    const state = given(registered, issued("svc_live_aaa"), ...rotations)
    assert.strictEqual(refusal(rotate(state, true, "svc_live_new", prefixes(49).at(-1))), "RateLimitExceeded")
    assert.strictEqual(refusal(rotate(given(registered, issued("svc_live_aaa"), revoked("svc_live_aaa")))), "ApiKeyNotFound")
  })
})
