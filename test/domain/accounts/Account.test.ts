import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Result } from "effect"
import { evolve, issueKey, noAccount, requestVerification, revokeKey, rotateKey, verifyEmail } from "#domain/accounts/Account.ts"
import {
  AccountRegistered,
  AccountSignedUp,
  EmailVerificationRequested,
  EmailVerified,
  PlanChanged
} from "#domain/accounts/AccountEvents.ts"
import { ApiKeyIssued, ApiKeyRevoked, ApiKeyRotated } from "#domain/accounts/ApiKey.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"

const account_id = "0192f0c0-0000-7000-8000-000000000001"
const start = DateTime.makeUnsafe("2026-11-20T12:00:00Z")
const after = (duration: Duration.Input) => DateTime.addDuration(start, duration)

type Happened = readonly [DomainEvent, at?: DateTime.Utc]

const given = (...facts: ReadonlyArray<Happened>) =>
  facts.reduce((state, [event, at = start]) => evolve(state, event, at), noAccount(account_id))

const signedUp: Happened = [AccountSignedUp.make({ account_id, plan: "free" })]
const registered: Happened = [AccountRegistered.make({ account_id, plan: "free", with_email: true, agent_id_hash: null })]
const requested = (at = start): Happened => [EmailVerificationRequested.make({ account_id }), at]
const verified: Happened = [EmailVerified.make({ account_id, by: "mail" })]
const issued = (prefix: string, at = start): Happened => [
  ApiKeyIssued.make({ account_id, key_id: `key ${prefix}`, prefix, key_sha256: "00" }),
  at
]
const revoked = (prefix: string): Happened => [ApiKeyRevoked.make({ account_id, key_id: `key ${prefix}`, prefix, by: "owner" })]

const prefixes = (count: number) => Array.from({ length: count }, (_, index) => `svc_live_${String(index).padStart(3, "0")}`)
const candidate = (prefix: string) => ({ keyId: `new ${prefix}`, prefix, sha256: "11" })

/** The tag of the failure. */
const refusal = (result: Result.Result<unknown, { readonly _tag: string }>) =>
  Result.match(result, { onSuccess: () => "accepted", onFailure: ({ _tag }) => _tag })

describe("an email address", () => {
  const issuedAt = start

  it("is verified by a token of the same day", () => {
    const decided = verifyEmail(given(signedUp, requested()), { issuedAt, now: after("1 second") })
    assert.deepStrictEqual(Result.getOrThrow(decided), EmailVerified.make({ account_id, by: "mail" }))
  })

  it("is verified by a token that is 24 hours old, and not by one a millisecond older", () => {
    const state = given(signedUp, requested())
    assert.isTrue(Result.isSuccess(verifyEmail(state, { issuedAt, now: after("24 hours") })))
    assert.strictEqual(refusal(verifyEmail(state, { issuedAt, now: after(Duration.millis(86_400_001)) })), "TokenExpired")
  })

  it("is not verified twice", () => {
    assert.strictEqual(refusal(verifyEmail(given(signedUp, requested(), verified), { issuedAt, now: start })), "InvalidToken")
  })

  it("gets a second mail only after ten minutes", () => {
    const state = given(signedUp, requested())
    assert.deepStrictEqual(requestVerification(state, after("599 seconds")), [])
    assert.deepStrictEqual(requestVerification(state, after("600 seconds")), [EmailVerificationRequested.make({ account_id })])
  })

  it("gets a third mail only ten minutes after the second", () => {
    const state = given(signedUp, requested(), requested(after("10 minutes")))
    assert.deepStrictEqual(requestVerification(state, after("19 minutes")), [])
    assert.lengthOf(requestVerification(state, after("20 minutes")), 1)
  })

  it("gets no mail once it is verified, or without a login", () => {
    assert.deepStrictEqual(requestVerification(given(signedUp, requested(), verified), after("1 day")), [])
    assert.deepStrictEqual(requestVerification(given(registered), after("1 day")), [])
  })
})

describe("issuing a key", () => {
  const issue = (state: ReturnType<typeof given>, now = start, candidates = [candidate("svc_live_new")]) =>
    issueKey(state, { candidates, now })

  it("stores neither the key nor its name", () => {
    const decided = Result.getOrThrow(issue(given(signedUp, verified)))
    const expected = ApiKeyIssued.make({ account_id, key_id: "new svc_live_new", prefix: "svc_live_new", key_sha256: "11" })
    assert.deepStrictEqual(decided?.event, expected)
  })

  it("uses the first candidate whose prefix no key of the account has had", () => {
    const state = given(signedUp, verified, issued("svc_live_aaa"), issued("svc_live_bbb"), revoked("svc_live_bbb"))
    const candidates = ["svc_live_aaa", "svc_live_bbb", "svc_live_ccc"].map(candidate)
    assert.strictEqual(Result.getOrThrow(issue(state, start, candidates))?.candidate.prefix, "svc_live_ccc")
    assert.isNull(Result.getOrThrow(issue(state, start, candidates.slice(0, 2))))
  })

  it("stops at 25 active keys and continues after a revocation", () => {
    const full = [signedUp, verified, ...prefixes(25).map((prefix) => issued(prefix))]
    assert.isTrue(Result.isSuccess(issue(given(...full.slice(0, -1)))))
    assert.strictEqual(refusal(issue(given(...full))), "RateLimitExceeded")
    assert.isTrue(Result.isSuccess(issue(given(...full, revoked("svc_live_007")))))
  })

  it("stops at 50 keys per month, including revoked ones, until the next month", () => {
    const facts = prefixes(50).flatMap((prefix) => [issued(prefix), revoked(prefix)])
    assert.isTrue(Result.isSuccess(issue(given(signedUp, verified, ...facts.slice(0, -2)))))
    const refused = Result.flip(issue(given(signedUp, verified, ...facts), DateTime.makeUnsafe("2026-11-30T23:59:59.500Z")))
    assert.strictEqual(Result.getOrThrow(refused).retryAfterSeconds, 1)
    assert.isTrue(Result.isSuccess(issue(given(signedUp, verified, ...facts), DateTime.makeUnsafe("2026-12-01T00:00:00Z"))))
  })
})

const rotated = (prefix: string, to: string, at = start): Happened => [
  ApiKeyRotated.make({ account_id, key_id: `key ${prefix}`, prefix: to, key_sha256: "22", previous_until: null }),
  at
]

describe("rotating a key", () => {
  const rotate = (state: ReturnType<typeof given>, keepsFormer = true, prefix = "svc_live_new") =>
    rotateKey(state, { keyId: "key svc_live_aaa", candidates: [candidate(prefix)], keepsFormer, now: start })
  const facts = { account_id, key_id: "key svc_live_aaa", prefix: "svc_live_new", key_sha256: "11" }

  it("stores the end of the former secret's validity", () => {
    const state = given(registered, issued("svc_live_aaa"))
    const kept = Result.getOrThrow(rotate(state))
    assert.deepStrictEqual(kept?.event, ApiKeyRotated.make({ ...facts, previous_until: after("24 hours") }))
    const ended = Result.getOrThrow(rotate(state, false))
    assert.deepStrictEqual(ended?.event, ApiKeyRotated.make({ ...facts, previous_until: null }))
  })

  it("does not reuse a prefix that a key of the account had before a rotation", () => {
    const state = given(registered, issued("svc_live_aaa"), rotated("svc_live_aaa", "svc_live_bbb"))
    for (const prefix of ["svc_live_aaa", "svc_live_bbb"]) assert.isNull(Result.getOrThrow(rotate(state, true, prefix)))
  })

  it("counts as a key of the month, and is rejected for a revoked key", () => {
    const rotations = prefixes(49).map((prefix) => rotated("svc_live_aaa", prefix))
    const state = given(registered, issued("svc_live_aaa"), ...rotations)
    assert.strictEqual(refusal(rotate(state)), "RateLimitExceeded")
    assert.strictEqual(refusal(rotate(given(registered, issued("svc_live_aaa"), revoked("svc_live_aaa")))), "ApiKeyNotFound")
  })
})

describe("revoking a key", () => {
  it("stores one event", () => {
    const decided = revokeKey(given(signedUp, verified, issued("svc_live_aaa")), "svc_live_aaa", "owner")
    assert.deepStrictEqual(Result.getOrThrow(decided), [revoked("svc_live_aaa")[0]])
  })

  it("stores no second event when repeated", () => {
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

it("a change of the plan keeps keys and verification", () => {
  const before = given(signedUp, verified, issued("svc_live_aaa"))
  const changed = evolve(before, PlanChanged.make({ account_id, plan: "business", per_month: null }), start)
  assert.deepStrictEqual(changed, { ...before, plan: "business" })
})

it("the events of an account contain no personal data", () => {
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
