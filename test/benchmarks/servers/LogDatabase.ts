/** A log in a database of its own, empty or with events that the event store appended. */
import { Array as Arr, Console, Effect, Layer, type Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AccountRegistered, accountStream } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import type { Answer, Attempt } from "#domain/vat/Verdict.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import { answered, sourceAnswer } from "#test/support/SourceAnswer.ts"

/** Connects as the owner of the tables. */
export const administrator = (url: Redacted.Redacted) => Postgres.layerAdministrator({ url, maxConnections: 2 })

export const make = Effect.fnUntraced(function* (name: string) {
  const { database } = yield* PostgresServer
  const url = yield* database(name)
  yield* Effect.provide(Migrations.run(), administrator(url), { local: true })
  return url
})

/** Provides the event store, with the connection settings of a service. */
export const store = (url: Redacted.Redacted) =>
  EventStore.layer.pipe(Layer.provideMerge(NodeCrypto.layer), Layer.provideMerge(Postgres.layer({ url, maxConnections: 10 })))

/**
 * Size of a generated log. Each key has an account of its own, and both are registered first. Then follow live answers, each for a
 * different VAT ID, and cache hits.
 */
export interface Contents {
  readonly events: number
  readonly keys: number
  readonly vatIds: number
}

/** Number of events that wait for the event store at a time, so that the next batch is full when the previous one is stored. */
const writers = 1_000
/** Number of events after which the progress is printed. */
const stage = 500_000

/** An answer with its evidence, whose personal document has about 1 kB. */
const answer: Answer = {
  ...sourceAnswer,
  company_name: "Musterhaus GmbH & Co KG",
  company_address: "Musterstrasse 22\n12345 musterort",
  evidence: { request: "x".repeat(120), response: "y".repeat(420), response_sha256: "0".repeat(64), http_status: 200 }
}

/** The call of the source that gave the answer. */
const calls: ReadonlyArray<Attempt> = [
  { source: "vies", outcome: "answered", code: null, started_at: answer.answered_at, duration_ms: 230 }
]

const vatIdOf = (index: number) => `ATU2${String(index).padStart(7, "0")}`

/** Returns the event of a cache hit. `answerPosition` is the position of the event with the answer. */
export const cacheHit = (vatId: string, answerPosition: number | null) =>
  VatIdVerified.make({
    vat_id: vatId,
    force_live: false,
    requester_vat_id: null,
    valid: answer.valid,
    source: answer.source,
    answered_at: answer.answered_at,
    served: "cache",
    answer: null,
    answer_position: answerPosition,
    attempts: []
  })

/** Returns the events that create an account with an API key, which have the same id. */
const registered = (id: string, sha256: string) =>
  [
    AccountRegistered.make({ account_id: id, plan: "free", with_email: false, agent_id_hash: null }),
    ApiKeyIssued.make({ account_id: id, key_id: id, prefix: `svc_live_${sha256.slice(0, 3)}`, key_sha256: sha256 })
  ] as const

/**
 * Appends events at the end of the log, as a service does. The first validations belong to the first key, the next ones to the
 * second key, and so on.
 */
const append = Effect.fnUntraced(function* ({ events, keys, vatIds }: Contents) {
  const store = yield* EventStore
  const { sha256Hex, uuidV7 } = yield* Crypto
  const each = <A, E>(count: number, one: (index: number) => Effect.Effect<A, E>) =>
    Effect.forEach(
      Arr.makeBy(count, (index) => index),
      one,
      { concurrency: writers }
    )
  const ids = Arr.makeBy(keys, () => uuidV7())
  yield* each(keys, (index) => {
    const id = ids[index] ?? ""
    return store.append({ stream: accountStream(id), expectedVersion: 0, events: registered(id, sha256Hex(id)), charge: null })
  })
  const validations = events - 2 * keys
  const validated = (index: number, event: DomainEvent) => {
    const stream = `key-${ids[Math.floor((index * keys) / validations)]}`
    const charge = { meter: `${stream}-2026-11`, units: 1, cap: events }
    return store.append({ stream, expectedVersion: null, events: [event], charge })
  }
  const answers = yield* each(vatIds, (index) => validated(index, answered(vatIdOf(index), answer, calls)))
  for (let done = vatIds; done < validations; done += stage) {
    yield* each(Math.min(stage, validations - done), (nth) => {
      const index = done + nth
      const known = index % vatIds
      return validated(index, cacheHit(vatIdOf(known), answers[known]?.position ?? null))
    })
    if (events > stage) yield* Console.log(`  ${Math.min(done + stage, validations)} of ${validations} validations appended`)
  }
})

/** Runs VACUUM, so that autovacuum has no work during a measurement. */
export const vacuum = (url: Redacted.Redacted) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`VACUUM (ANALYZE)`).pipe(Effect.provide(administrator(url), { local: true }))

const findHead = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt }),
    execute: () => sql`SELECT next_position AS head FROM vatproof.logs WHERE log_id = 0`
  })
  return Number((yield* find(undefined)).head)
})

/** Appends events to the log through the event store. Returns the number of events in the log. */
export const fill = (url: Redacted.Redacted, contents: Contents) =>
  Effect.gen(function* () {
    yield* append(contents)
    const head = yield* findHead
    yield* vacuum(url)
    return head
  }).pipe(Effect.provide(store(url), { local: true }))
