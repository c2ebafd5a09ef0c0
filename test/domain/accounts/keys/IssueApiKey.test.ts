import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import { issueKey } from "#domain/accounts/keys/IssueApiKey.ts"
import {
  account_id,
  candidate,
  given,
  issued,
  prefixes,
  refusal,
  revoked,
  signedUp,
  start,
  verified
} from "#test/support/AccountHistory.ts"

describe("issuing an API key", () => {
  const issue = (state: ReturnType<typeof given>, now = start, candidates = [candidate("svc_live_new")]) =>
    issueKey(state, { candidates, now })

  it("records an event with the id, the prefix and the SHA-256 of the key, but without the key itself and its label", () => {
    const decided = Result.getOrThrow(issue(given(signedUp, verified)))
    const expected = ApiKeyIssued.make({ account_id, key_id: "new svc_live_new", prefix: "svc_live_new", key_sha256: "11" })
    assert.deepStrictEqual(decided?.event, expected)
  })

  it("uses the first generated key whose prefix no key of the account has had", () => {
    const state = given(signedUp, verified, issued("svc_live_aaa"), issued("svc_live_bbb"), revoked("svc_live_bbb"))
    const candidates = ["svc_live_aaa", "svc_live_bbb", "svc_live_ccc"].map(candidate)
    assert.strictEqual(Result.getOrThrow(issue(state, start, candidates))?.candidate.prefix, "svc_live_ccc")
    assert.isNull(Result.getOrThrow(issue(state, start, candidates.slice(0, 2))))
  })

  it("is rejected for an account with 25 active keys, until one is revoked", () => {
    const full = [signedUp, verified, ...prefixes(25).map((prefix) => issued(prefix))]
    assert.isTrue(Result.isSuccess(issue(given(...full.slice(0, -1)))))
    assert.strictEqual(refusal(issue(given(...full))), "RateLimitExceeded")
    assert.isTrue(Result.isSuccess(issue(given(...full, revoked("svc_live_007")))))
  })

  it("is rejected after 50 keys in a month, including revoked ones, until the next month", () => {
    const facts = prefixes(50).flatMap((prefix) => [issued(prefix), revoked(prefix)])
    assert.isTrue(Result.isSuccess(issue(given(signedUp, verified, ...facts.slice(0, -2)))))
    const refused = Result.flip(issue(given(signedUp, verified, ...facts), DateTime.makeUnsafe("2026-11-30T23:59:59.500Z")))
    assert.strictEqual(Result.getOrThrow(refused).retryAfterSeconds, 1)
    assert.isTrue(Result.isSuccess(issue(given(signedUp, verified, ...facts), DateTime.makeUnsafe("2026-12-01T00:00:00Z"))))
  })
})
