import { assert, describe, it } from "@effect/vitest"
import { Duration, Result } from "effect"
import { evolve, requestPasswordReset, requestVerification, resetPassword, verifyEmail } from "#domain/accounts/Account.ts"
import {
  AccountSignedUp,
  EmailVerificationRequested,
  EmailVerified,
  PasswordChanged,
  PasswordResetRequested,
  PlanChanged
} from "#domain/accounts/AccountEvents.ts"
import { ApiKeyIssued, ApiKeyRevoked } from "#domain/accounts/ApiKeyEvents.ts"
import {
  account_id,
  after,
  given,
  issued,
  refusal,
  registered,
  requested,
  revoked,
  signedUp,
  start,
  verified,
  type Happened
} from "#test/support/AccountHistory.ts"

describe("an email address", () => {
  const issuedAt = start

  it("is verified by a token that was just issued", () => {
    const decided = verifyEmail(given(signedUp, requested()), { issuedAt, now: after("1 second") })
    assert.deepStrictEqual(Result.getOrThrow(decided), EmailVerified.make({ account_id, by: "mail" }))
  })

  it("is verified by a token that is 24 hours old, but not by an older one", () => {
    const state = given(signedUp, requested())
    assert.isTrue(Result.isSuccess(verifyEmail(state, { issuedAt, now: after("24 hours") })))
    assert.strictEqual(refusal(verifyEmail(state, { issuedAt, now: after(Duration.millis(86_400_001)) })), "TokenExpired")
  })

  it("cannot be verified again after it was verified", () => {
    assert.strictEqual(refusal(verifyEmail(given(signedUp, requested(), verified), { issuedAt, now: start })), "InvalidToken")
  })

  it("gets a second verification mail only after ten minutes", () => {
    const state = given(signedUp, requested())
    assert.deepStrictEqual(requestVerification(state, after("599 seconds")), [])
    assert.deepStrictEqual(requestVerification(state, after("600 seconds")), [EmailVerificationRequested.make({ account_id })])
  })

  it("gets a third verification mail only ten minutes after the second", () => {
    const state = given(signedUp, requested(), requested(after("10 minutes")))
    assert.deepStrictEqual(requestVerification(state, after("19 minutes")), [])
    assert.lengthOf(requestVerification(state, after("20 minutes")), 1)
  })

  it("gets no verification mail if it is verified, or if its account has no login", () => {
    assert.deepStrictEqual(requestVerification(given(signedUp, requested(), verified), after("1 day")), [])
    assert.deepStrictEqual(requestVerification(given(registered), after("1 day")), [])
  })
})

describe("a password reset by mail", () => {
  const byProgram: Happened = [EmailVerified.make({ account_id, by: "non_browser" })]
  const changed = PasswordChanged.make({ account_id, by: "mail" })
  const reset = (...facts: ReadonlyArray<Happened>) =>
    Result.getOrThrow(resetPassword(given(...facts), { issuedAt: start, now: start }))

  it("proves the address and revokes the active keys, if no mail proved the address before", () => {
    const keys = [issued("svc_live_aaa"), issued("svc_live_bbb"), revoked("svc_live_bbb")]
    const expected = [verified[0], revoked("svc_live_aaa")[0], changed]
    assert.deepStrictEqual(reset(signedUp, byProgram, ...keys), expected)
    assert.deepStrictEqual(reset(registered, ...keys), expected)
    assert.deepStrictEqual(reset(signedUp, byProgram, verified, ...keys), [changed])
  })

  it("can be requested for an account without a login, which then has one", () => {
    const events = requestPasswordReset(given(registered), start)
    assert.deepStrictEqual(events, [PasswordResetRequested.make({ account_id })])
    assert.isFalse(given(registered).hasLogin)
    assert.isTrue(given(registered, [changed]).hasLogin)
  })
})

describe("an account", () => {
  it("keeps its API keys and its verified email address when its plan changes", () => {
    const before = given(signedUp, verified, issued("svc_live_aaa"))
    const changed = evolve(before, PlanChanged.make({ account_id, plan: "business", per_month: null }), start)
    assert.deepStrictEqual(changed, { ...before, plan: "business" })
  })

  it("has no fields for personal data in its events", () => {
    const fields = [AccountSignedUp, EmailVerificationRequested, EmailVerified, PlanChanged, ApiKeyIssued, ApiKeyRevoked].map(
      ({ schema, type }) => [type, "fields" in schema ? Object.keys(Object(schema.fields)) : []]
    )
    assert.deepStrictEqual(Object.fromEntries(fields), {
      AccountSignedUp: ["account_id", "plan"],
      EmailVerificationRequested: ["account_id"],
      EmailVerified: ["account_id", "by"],
      PlanChanged: ["account_id", "plan", "per_month"],
      ApiKeyIssued: ["account_id", "key_id", "prefix", "key_sha256"],
      ApiKeyRevoked: ["account_id", "key_id", "prefix", "by"]
    })
  })
})
