import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import { evolve, noAccount } from "#domain/accounts/Account.ts"
import { AccountRegistered, AccountSignedUp, EmailVerified } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyClaimed, ApiKeyIssued, ApiKeyReleased, ApiKeyRevoked, ApiKeyRotated } from "#domain/accounts/ApiKeyEvents.ts"
import { claimKey } from "#domain/accounts/keys/ClaimApiKey.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

const agent = "019371c0-5f00-7000-8000-0000000000a9"
const person = "019371c0-5f00-7000-8000-0000000000af"
const at = DateTime.makeUnsafe("2026-11-21T13:05:00Z")
const now = DateTime.makeUnsafe("2026-11-23T08:00:00Z")
const prefix = "svc_live_aaa"
const asked = { keyId: "key", prefix, sha256: "00" }

const given = (account_id: string, ...events: ReadonlyArray<DomainEvent>) =>
  events.reduce((state, event) => evolve(state, event, at), noAccount(account_id))
const issued = (account_id: string, key_id: string, of: string) =>
  ApiKeyIssued.make({ account_id, key_id, prefix: of, key_sha256: "00" })

const registered = [
  AccountRegistered.make({ account_id: agent, plan: "free", with_email: false, agent_id_hash: null }),
  issued(agent, "key", prefix)
]
const signedUp = [
  AccountSignedUp.make({ account_id: person, plan: "free" }),
  EmailVerified.make({ account_id: person, by: "mail" })
]
const holder = given(agent, ...registered)
const claimer = given(person, ...signedUp)

const refusal = (decided: ReturnType<typeof claimKey>) => Result.getOrThrow(Result.flip(decided))

const released = ApiKeyReleased.make({ account_id: agent, to_account_id: person, key_id: "key", prefix })
const claimed = ApiKeyClaimed.make({
  account_id: person,
  from_account_id: agent,
  key_id: "key",
  prefix,
  key_sha256: "00",
  issued_at: at
})

describe("claiming an API key", () => {
  it("records an event for both accounts, and moves the key from the agent's account to the claiming account", () => {
    const decided = Result.getOrThrow(claimKey({ claimer, holder }, asked, now))
    assert.deepStrictEqual(decided, { released: [released], claimed: [claimed] })
    assert.deepStrictEqual(evolve(holder, released, now).keys, [])
    const [key] = evolve(claimer, claimed, now).keys
    assert.deepStrictEqual(key, { keyId: "key", prefix, secrets: [{ prefix, at: now }], revoked: false })
  })

  it("records no event if the claiming account has the key already", () => {
    const states = { claimer: given(person, ...signedUp, claimed), holder: given(agent, ...registered, released) }
    assert.deepStrictEqual(Result.getOrThrow(claimKey(states, asked, now)), { released: [], claimed: [] })
  })

  it("is rejected if the key's account has a login, or another account has claimed the key first", () => {
    for (const other of [
      given(agent, AccountSignedUp.make({ account_id: agent, plan: "free" }), issued(agent, "key", prefix)),
      given(agent, ...registered, released)
    ])
      assert.strictEqual(refusal(claimKey({ claimer, holder: other }, asked, now))._tag, "ApiKeyNotClaimable")
  })

  it("is rejected for a revoked key and for a replaced secret with the same error as for an unknown key", () => {
    const facts = { account_id: agent, key_id: "key", prefix: "svc_live_bbb" }
    for (const event of [
      ApiKeyRevoked.make({ ...facts, by: "operator" }),
      ApiKeyRotated.make({ ...facts, key_sha256: "11", previous_until: now })
    ])
      assert.strictEqual(refusal(claimKey({ claimer, holder: evolve(holder, event, at) }, asked, now))._tag, "UnknownApiKey")
  })

  it("is rejected if the claiming account has 25 active keys, or has had a key with the same prefix", () => {
    const others = Array.from({ length: 25 }, (_, index) => issued(person, `key ${index}`, `svc_live_${100 + index}`))
    const full = given(person, ...signedUp, ...others)
    assert.strictEqual(refusal(claimKey({ claimer: full, holder }, asked, now))._tag, "RateLimitExceeded")
    const same = given(person, ...signedUp, issued(person, "another", prefix))
    const taken = refusal(claimKey({ claimer: same, holder }, asked, now))
    assert.strictEqual(taken._tag, "ApiKeyNotClaimable")
    assert.include(taken.message, "/v1/keys/rotate")
  })
})
