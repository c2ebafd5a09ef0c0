/** Creates, lists, revokes and opens links to receipts. The links of a receipt are events in the stream of the receipt. */
import { Clock, DateTime, Effect, Layer, RcMap, Redacted, Schema, Semaphore } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError } from "effect/sql/SqlError"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { receiptStream } from "#domain/receipts/Receipt.ts"
import {
  admitLink,
  claimsText,
  type LinkClaims,
  maxStreamLength,
  parseToken,
  type ReceiptLink,
  ReceiptLinkCreated,
  ReceiptLinkRevoked
} from "#domain/receipts/ReceiptLink.ts"
import { ReceiptLinkNotFound, ReceiptLinks } from "#domain/receipts/ReceiptLinks.ts"
import { type ReceiptRecord, ReceiptReader } from "#domain/receipts/ReceiptReader.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { VersionConflict } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"

/** Maximum attempts of a change. An attempt fails if another replica changes a link of the same receipt meanwhile. */
const maxDecisions = 20

const decodeCreated = EventTypes.decoder(ReceiptLinkCreated)
const decodeRevoked = EventTypes.decoder(ReceiptLinkRevoked)

const linksIn = Effect.fnUntraced(function* (events: ReadonlyArray<StoredEvent>) {
  const links = new Map<string, ReceiptLink>()
  for (const { data, occurred_at, type } of events) {
    if (type === ReceiptLinkCreated.type) {
      const { by, expires_at: expiresAt, key_id: keyId, link_id: linkId, until } = yield* decodeCreated(data)
      const createdAt = DateTime.makeUnsafe(occurred_at)
      links.set(linkId, { linkId, keyId, by, createdAt, expiresAt, endsWithKey: until === "key", isRevoked: false })
    }
    if (type === ReceiptLinkRevoked.type) {
      const created = links.get((yield* decodeRevoked(data)).link_id)
      if (created !== undefined) links.set(created.linkId, { ...created, isRevoked: true })
    }
  }
  return links
})

const tooManyEvents = (receiptId: string) =>
  `The links of receipt ${receiptId} cannot be read: it has more than ${maxStreamLength} events (a defect)`

const makeSignatures = Effect.map(KeyedHash, (hash) => {
  const signatureOf = (signed: string) => hash.of("receipt-link", signed)
  /** Verifies the signature of a token. Compares hashes, so that the duration reveals nothing about the right signature. */
  const isSigned = (signed: string, signature: string) =>
    hash.of("receipt-link", signature) === hash.of("receipt-link", signatureOf(signed))
  return { isSigned, signatureOf }
})

const appendTo = (events: EventStore["Service"]) => (receiptId: string, expectedVersion: number, event: DomainEvent) =>
  events
    .appendWith([{ stream: receiptStream(receiptId), expectedVersion, events: [event], charge: null }], () => Effect.void)
    .pipe(Effect.catchIf(isSqlError, QueryPolicy.refused))

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const { isSigned, signatureOf } = yield* makeSignatures
  const crypto = yield* Crypto
  const receipts = yield* ReceiptReader
  const { verified } = yield* SignedLeaves.make
  const holderOf = yield* makeHolderOf
  const inTurn = yield* makeInTurn

  const linksOf = Effect.fnUntraced(function* (receiptId: string) {
    const stored = yield* verified(yield* events.readStream(receiptStream(receiptId), 0, maxStreamLength + 1))
    // Without the later events, a revoked link would be valid.
    if (stored.length > maxStreamLength) return yield* Effect.die(tooManyEvents(receiptId))
    return { links: yield* linksIn(stored), version: stored.length }
  })

  const append = appendTo(events)

  const createOnce = Effect.fnUntraced(function* (
    ownerId: string,
    { accountId, keyId, receipt }: ReceiptRecord,
    { days, endsWithKey }: Validity
  ) {
    const receiptId = receipt.receipt_id
    const { links, version } = yield* linksOf(receiptId)
    const now = yield* DateTime.now
    yield* Effect.fromResult(admitLink([...links.values()], now))
    const expiresAtSeconds = Math.floor(DateTime.toEpochMillis(DateTime.add(now, { days })) / 1000)
    const claims: LinkClaims = { receiptId, linkId: crypto.uuidV7(), expiresAtSeconds }
    const { linkId } = claims
    const expiresAt = DateTime.makeUnsafe(expiresAtSeconds * 1000)
    const by = ownerId === keyId ? "key" : "account"
    const until = endsWithKey ? ({ until: "key" } as const) : {}
    const created = { account_id: accountId, key_id: keyId, link_id: linkId, by, expires_at: expiresAt, ...until } as const
    yield* append(receiptId, version, ReceiptLinkCreated.make(created))
    const signed = claimsText(claims)
    return { linkId, token: Redacted.make(`${signed}.${signatureOf(signed)}`), expiresAt }
  })

  const create = Effect.fn("PgReceiptLinks.create")(function* (ownerId: string, receiptId: string, validity: Validity) {
    const record = yield* receipts.find(ownerId, receiptId)
    return yield* inTurn(receiptId, createOnce(ownerId, record, validity))
  })

  const list = Effect.fn("PgReceiptLinks.list")(function* (ownerId: string, receiptId: string) {
    yield* receipts.holderOf(ownerId, receiptId)
    return [...(yield* linksOf(receiptId)).links.values()].toReversed()
  })

  const revokeOnce = Effect.fnUntraced(function* (ownerId: string, receiptId: string, linkId: string) {
    const { accountId, keyId } = yield* receipts.holderOf(ownerId, receiptId)
    const { links, version } = yield* linksOf(receiptId)
    const link = links.get(linkId)
    if (link === undefined) return yield* new ReceiptLinkNotFound({})
    if (link.isRevoked) return
    const by = ownerId === keyId ? "key" : "account"
    const revoked = { account_id: accountId, key_id: keyId, link_id: linkId, by } as const
    yield* append(receiptId, version, ReceiptLinkRevoked.make(revoked))
  })

  const revoke = Effect.fn("PgReceiptLinks.revoke")(function* (ownerId: string, receiptId: string, linkId: string) {
    return yield* inTurn(receiptId, revokeOnce(ownerId, receiptId, linkId))
  })

  const open = Effect.fn("PgReceiptLinks.open")(function* (token: Redacted.Redacted) {
    const parsed = parseToken(Redacted.value(token))
    if (parsed === null || !isSigned(parsed.signed, parsed.signature)) return yield* new ReceiptLinkNotFound({})
    const { expiresAtSeconds, linkId, receiptId } = parsed.claims
    if (expiresAtSeconds * 1000 <= (yield* Clock.currentTimeMillis)) return yield* new ReceiptLinkNotFound({})
    const link = (yield* linksOf(receiptId)).links.get(linkId)
    if (link === undefined || link.isRevoked) return yield* new ReceiptLinkNotFound({})
    // The links of a closed account are invalid, because its owner can no longer revoke them.
    const holder = yield* holderOf(link.keyId)
    if (holder?.is_open !== true || (link.endsWithKey && !holder.is_active)) return yield* new ReceiptLinkNotFound({})
    return yield* receipts.find(link.keyId, receiptId)
  })

  return ReceiptLinks.of({ create, list, revoke, open })
})

/**
 * Creates a function that runs the changes of one receipt one after the other on this replica, because concurrent ones would conflict. A
 * change that conflicts with another replica is repeated.
 */
const makeInTurn = Effect.map(RcMap.make({ lookup: (_receiptId: string) => Semaphore.make(1) }), (turns) => {
  const again = { times: maxDecisions - 1, while: ({ _tag }: { readonly _tag: string }) => _tag === "VersionConflict" }
  return <A, E extends { readonly _tag: string }>(receiptId: string, change: Effect.Effect<A, E | VersionConflict>) =>
    RcMap.get(turns, receiptId).pipe(
      Effect.flatMap((turn) => turn.withPermit(Effect.retry(change, again))),
      Effect.scoped,
      Effect.catchIf(Schema.is(VersionConflict), () => Effect.fail(new StoreUnavailable({})))
    )
})

type Validity = Parameters<ReceiptLinks["Service"]["create"]>[2]

/** Creates a function that returns whether an API key is active, and whether its current account is open. */
const makeHolderOf = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ is_open: Schema.Boolean, is_active: Schema.Boolean }),
    execute: (keyId) => sql`SELECT a.closed_at IS NULL AS is_open, k.revoked_at IS NULL AS is_active
      FROM (SELECT account_id, revoked_at FROM vatproof.api_keys WHERE key_id = ${keyId}::uuid) k
      CROSS JOIN LATERAL (SELECT closed_at FROM vatproof.accounts WHERE account_id = k.account_id LIMIT 1) a`
  })
  return (keyId: string) =>
    find(keyId).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map(([holder]) => holder)
    )
})

export const layer = Layer.effect(ReceiptLinks, make)
