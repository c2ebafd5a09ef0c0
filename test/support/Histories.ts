/** Random histories of a service: events with few possible values that change every projection. */
import { DateTime, Effect, Schema } from "effect"
import { AccountRegistered, AccountSignedUp, accountStream, EmailVerified, PlanChanged } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyClaimed, ApiKeyIssued, ApiKeyReleased, ApiKeyRevoked } from "#domain/accounts/ApiKeyEvents.ts"
import { AuditorAdded, AuditorRevoked, auditorStream } from "#domain/audit/Auditor.ts"
import type { DomainEvent, EventIdentity } from "#domain/log/DomainEvent.ts"
import { BatchAccepted, BatchCancelled, BatchCompleted, BatchItemsAccepted, BatchItemsCancelled } from "#domain/pending/Batch.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import type { Attempt } from "#domain/vat/Verdict.ts"
import { ValidationAccepted, ValidationCancelled, ValidationExpired } from "#domain/validation/ValidationTask.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { answered, answerJson, sourceAnswer } from "#test/support/SourceAnswer.ts"

const one = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))

export const kinds = [
  "account",
  "verified",
  "plan",
  "key",
  "revoked",
  "claimed",
  "live",
  "repeated",
  "receipt",
  "auditor",
  "auditorRevoked",
  "accepted",
  "closed",
  "batch",
  "itemClosed",
  "batchCancelled",
  "itemsCancelled",
  "batchCompleted"
] as const

/** Describes an event. `who` selects its account, key or auditor; `what` selects its VAT ID or another variant. */
export const Happening = Schema.Struct({
  kind: Schema.Literals(kinds),
  who: one,
  what: one
})
export type Happening = typeof Happening.Type

const id = (kind: string, who: number) => `019371c0-5f00-7000-8000-0000000${kind}${String(who).padStart(5 - kind.length, "0")}`
const vatIds = ["ATU12345678", "DE123456789", "FR12345678901", "IT12345678901"]

interface Fact {
  readonly stream: string
  readonly event: DomainEvent
  readonly meter?: string
  /** A second event, appended in the same transaction. */
  readonly also?: Fact
  readonly identity?: EventIdentity
}

const repeated = (vatId: string): DomainEvent => ({
  type: "VatIdVerified",
  schemaVersion: 1,
  data: { answer: null, answer_position: 0, served: "cache", valid: true, vat_id: vatId }
})

const receipt = (key_id: string, account_id: string, vatId: string, receiptId: string): DomainEvent => ({
  type: "ReceiptIssued",
  schemaVersion: 1,
  data: {
    account_id,
    answer: { ...answerJson, source: "bzst" },
    attempts: [
      { code: "evatr-0000", duration_ms: 80, outcome: "answered", source: "bzst", started_at: "2027-01-15T08:30:00.000Z" }
    ],
    key_id,
    receipt: { receipt_id: receiptId, result: { official_address: "", official_name: "Muster GmbH" }, target_vat_id: vatId }
  }
})

/** The calls of a live answer: an outage, an attempt that called no source, and the answer, in an hour that depends on `who`. */
const callsOf = (who: number, what: number): ReadonlyArray<Attempt> => {
  const call = { source: "vies", code: null, started_at: DateTime.makeUnsafe(1_800_000_000_000 + who * 3_600_000) } as const
  return [
    { ...call, outcome: "member_state_unavailable", code: "MS_UNAVAILABLE", duration_ms: 40 + what },
    { ...call, outcome: "circuit_open", duration_ms: 0 },
    { ...call, outcome: "answered", duration_ms: 100 * (what + 1) }
  ]
}

/** Number of the account that claims keys of the other accounts. */
const claimer = 3

const nameOfKey = (who: number, what: number) => ({ key_id: id("b0", who * 10 + what), prefix: `svc_live_${who}${what}` })

/** Returns the two events of a claim: the account `who` releases a key, and the account `claimer` gets it. */
const claimOf = ({ what, who }: Happening): Fact => {
  const [account_id, from_account_id] = [id("ac", claimer), id("ac", who)]
  const key = nameOfKey(who, what)
  const released = ApiKeyReleased.make({ account_id: from_account_id, to_account_id: account_id, ...key })
  const issued_at = DateTime.makeUnsafe(1_700_000_000_000 + who)
  const claimed = ApiKeyClaimed.make({ account_id, from_account_id, key_sha256: secretOf(key), issued_at, ...key })
  return {
    stream: accountStream(from_account_id),
    event: released,
    also: { stream: accountStream(account_id), event: claimed }
  }
}

/** Returns the events of a batch: three items with VAT IDs, a malformed item, and a duplicate. */
const batchOf = (
  stream: string,
  facts: { readonly batch_id: string; readonly account_id: string; readonly key_id: string }
): Fact => {
  const expires_at = DateTime.makeUnsafe(1_900_000_000_000)
  const [first = "", ...others] = vatIds.slice(0, 3)
  const vat_ids = [first, ...others, null, first]
  const items = BatchItemsAccepted.make({ ...facts, first: 0, expires_at, vat_ids, duplicate_of: { 4: 0 } })
  const accepted = BatchAccepted.make({
    ...facts,
    items: 5,
    malformed: 1,
    duplicates: 1,
    chunks: [],
    expires_at,
    request_hash: null
  })
  return { stream, event: accepted, also: { stream, event: items } }
}

const secretOf = ({ key_id }: { readonly key_id: string }) => key_id.replaceAll("-", "").repeat(2)

/** Returns the event of a happening. `number` makes names unique; `owner` is the number of the key's account. */
const factOf = (happening: Happening, number: number, owner: number): Fact => {
  const { kind, what, who } = happening
  const [account_id, auditor_id] = [id("ac", owner), id("ad", who)]
  const { key_id, prefix } = nameOfKey(who, what)
  const task_id = id("da", who * 10 + what)
  const vatId = vatIds[what] ?? ""
  const account = accountStream(account_id)
  const sha256 = secretOf({ key_id })
  const plan = what === 0 ? "free" : "business"
  const stream = `key-${key_id}`
  const meter = `${stream}/2026-11`
  switch (kind) {
    case "claimed":
      return claimOf(happening)
    case "account": {
      const made =
        what < 2
          ? AccountRegistered.make({ account_id, plan, with_email: true, agent_id_hash: null })
          : AccountSignedUp.make({ account_id, plan })
      return { stream: account, event: made }
    }
    case "verified":
      return { stream: account, event: EmailVerified.make({ account_id, by: "mail" }) }
    case "plan":
      return { stream: account, event: PlanChanged.make({ account_id, plan, per_month: what === 1 ? 77 : null }) }
    case "key":
      return {
        stream: account,
        event: ApiKeyIssued.make({ account_id, key_id, prefix, key_sha256: sha256 })
      }
    case "revoked":
      return { stream: account, event: ApiKeyRevoked.make({ account_id, key_id, prefix, by: "owner" }) }
    case "live": {
      const answer = {
        ...sourceAnswer,
        company_name: `Company ${number} \u0000`,
        answered_at: DateTime.makeUnsafe(1_800_000_000_000 + who * 1_000)
      }
      return { stream, event: answered(vatId, answer, callsOf(who, what)), meter }
    }
    case "repeated":
      return { stream, event: repeated(vatId), meter }
    case "receipt": {
      const receiptId = `VP-QC-20261101-${String(number).padStart(10, "A")}`
      return { stream: `receipt-${receiptId}`, event: receipt(key_id, account_id, vatId, receiptId), meter }
    }
    case "auditor": {
      const expires_at = DateTime.makeUnsafe(1_900_000_000_000 + what)
      const added = AuditorAdded.make({
        auditor_id,
        account_id: what === 0 ? null : account_id,
        name: `Office ${what}`,
        expires_at,
        token_sha256: sha256
      })
      return { stream: auditorStream(auditor_id), event: added }
    }
    case "accepted": {
      const accepted = ValidationAccepted.make({
        account_id,
        key_id,
        vat_id: vatId,
        force_live: false,
        expires_at: DateTime.makeUnsafe(1_900_000_000_000 + what),
        request_hash: null,
        reference_hash: what === 0 ? null : `reference ${what}`
      })
      return { stream, event: accepted, identity: { eventId: task_id, causationId: null } }
    }
    case "closed": {
      const facts = { account_id, key_id, vat_id: vatId }
      const event = [
        repeated(vatId),
        ValidationExpired.make(facts),
        ValidationCancelled.make({ ...facts, reason: "requested" as const })
      ][what]
      return { stream, event: event ?? repeated(vatId), identity: { eventId: id("ce", who * 10 + what), causationId: task_id } }
    }
    case "batch":
      return batchOf(stream, { batch_id: id("ba", who), account_id, key_id })
    case "itemClosed": {
      const item = computedId(pureCrypto, "item", id("ba", who), String(what))
      return { stream, event: repeated(vatId), identity: { eventId: id("be", who * 10 + what), causationId: item } }
    }
    case "batchCancelled":
      return { stream, event: BatchCancelled.make({ batch_id: id("ba", who), account_id, key_id }) }
    case "batchCompleted": {
      const facts = { batch_id: id("ba", who), account_id, key_id }
      return { stream, event: BatchCompleted.make({ ...facts, final: 1, expired: 0, cancelled: 0 }) }
    }
    case "itemsCancelled":
      return { stream, event: BatchItemsCancelled.make({ batch_id: id("ba", who), account_id, key_id, first: 0, count: 5 }) }
    case "auditorRevoked":
      return { stream: auditorStream(auditor_id), event: AuditorRevoked.make({ auditor_id, account_id: null }) }
  }
}

let number = 0

/** Returns whether a happening may follow the happenings in `happened`. Adds a possible happening to `happened`. */
const isPossible = (happened: Set<string>, { kind, what, who }: Happening) => {
  const needs: Readonly<Record<string, string>> = {
    verified: `account ${who}`,
    plan: `account ${who}`,
    key: `account ${who}`,
    revoked: `key ${who} ${what}`,
    claimed: `key ${who} ${what}`,
    auditorRevoked: `auditor ${who}`,
    closed: `accepted ${who} ${what}`,
    itemClosed: `batch ${who}`,
    batchCancelled: `batch ${who}`,
    batchCompleted: `batch ${who}`,
    itemsCancelled: `batchCancelled ${who}`
  }
  const needed = needs[kind]
  const once = ["key", "claimed", "accepted", "closed", "itemClosed"].includes(kind) ? `${kind} ${who} ${what}` : `${kind} ${who}`
  if (needed !== undefined && !happened.has(needed)) return false
  if (
    [
      "account",
      "key",
      "claimed",
      "auditor",
      "accepted",
      "closed",
      "batch",
      "itemClosed",
      "batchCancelled",
      "itemsCancelled",
      "batchCompleted"
    ].includes(kind) &&
    happened.has(once)
  )
    return false
  if (kind === "claimed" && (who === claimer || !happened.has(`account ${claimer}`))) return false
  // Tasks whose `what` is 3 stay open.
  if ((kind === "closed" || kind === "itemClosed") && what === 3) return false
  if (kind === "itemClosed" && happened.has(`itemsCancelled ${who}`)) return false
  happened.add(once)
  return true
}

const commandOf = (stream: string, event: DomainEvent) => ({
  stream,
  expectedVersion: null,
  events: [event] as const,
  charge: null
})

/** Appends the possible events, one after the other, and records them in `happened`. */
export const append = Effect.fnUntraced(function* (happened: Set<string>, happenings: ReadonlyArray<Happening>) {
  const events = yield* EventStore
  for (const happening of happenings) {
    if (!isPossible(happened, happening)) continue
    number += 1
    const isOfClaimer =
      ["revoked", "receipt"].includes(happening.kind) && happened.has(`claimed ${happening.who} ${happening.what}`)
    const { also, event, identity, meter, stream } = factOf(happening, number, isOfClaimer ? claimer : happening.who)
    if (also !== undefined) {
      const both = [commandOf(stream, event), commandOf(also.stream, also.event)] as const
      yield* events.appendWith(both, () => Effect.void).pipe(Effect.orDie)
      continue
    }
    const charge = meter === undefined ? null : { meter, units: happening.who === 0 ? 0 : 1, cap: 1_000_000 }
    const identities = identity === undefined ? undefined : [identity]
    yield* events.append({ stream, expectedVersion: null, events: [event], charge, identities }).pipe(Effect.orDie)
  }
})
