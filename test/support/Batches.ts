/** Batches of commands for the functions that append, of few words, and what they leave in the database. */
import { Data, Deferred, Effect, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, SqlSchema } from "effect/sql"
import type * as Append from "#events/Append.ts"

/** A command, and what may be wrong with it. */
export interface Step {
  readonly stream: string
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  readonly latestOf: string | null
  /** When a source gave the answer that the events hold, in ISO 8601. */
  readonly answeredAt?: string
  readonly newest: { readonly key: string; readonly isRight: boolean } | null
  readonly minute: { readonly bucket: string; readonly limit: number } | null
  readonly epoch: number | null
  readonly events?: number
  readonly expected?: number
  readonly list?: string
}

export const plain: Step = { stream: "a", charge: null, latestOf: null, newest: null, minute: null, epoch: null }

const orNull = (value: number | null | undefined) => (value === null || value === undefined ? null : BigInt(value))

/** `positions` are those of the newest answers. */
export const prepare = (step: Step, positions: ReadonlyMap<string, number> = new Map()): Append.Prepared => {
  const { answeredAt, charge, epoch, events = 1, latestOf, minute, newest, stream } = step
  const position = newest === null ? 0 : (positions.get(newest.key) ?? 0) + (newest.isRight ? 0 : 1)
  const presumed = { epoch, newest: newest === null ? null : { key: newest.key, position }, minute }
  const event = { type: "Tested", schemaVersion: 1, data: {} }
  const command: Append.PresumingCommand = { stream, expectedVersion: null, events: [event], charge, latestOf, presumed }
  const rowOf = (index: number): Append.Cells => ({
    stream,
    expected: orNull(step.expected),
    eventId: SecureRandom.uuidV7Unsafe(),
    type: event.type,
    schemaVersion: 1,
    occurredAt: 1_800_000_000_000,
    correlationId: SecureRandom.uuidV7Unsafe(),
    causationId: null,
    traceId: new Uint8Array(16).fill(7),
    data: JSON.stringify(answeredAt === undefined ? { kind: "data" } : { answered_at: answeredAt, kind: "data" }),
    metadata: '{"kind":"metadata"}',
    meter: charge?.meter ?? null,
    units: index === 0 ? (charge?.units ?? 0) : 0,
    cap: orNull(charge?.cap),
    latest: latestOf,
    lists: step.list ?? null,
    epoch: orNull(epoch),
    answerKey: newest?.key ?? null,
    answerPosition: newest === null ? null : BigInt(position),
    bucket: minute?.bucket ?? null,
    bucketLimit: minute?.limit ?? null
  })
  return { command, rows: Array.from({ length: events }, (_, index) => rowOf(index)) }
}

/** The column `text` of a statement. */
export const texts = Effect.fnUntraced(function* (statement: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ text: Schema.String }),
    execute: () => sql.unsafe(statement).unprepared
  })
  return (yield* find(undefined)).map(({ text }) => text)
})

class RolledBack extends Data.TaggedError("RolledBack") {}

/** What the effect comes to, and nothing that it wrote. */
export const undone = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const kept = yield* Deferred.make<A, E>()
  yield* Effect.exit(effect).pipe(
    Effect.tap((exit) => Deferred.done(kept, exit)),
    Effect.andThen(new RolledBack()),
    sql.withTransaction,
    Effect.catchTag("RolledBack", () => Effect.void)
  )
  return yield* Deferred.await(kept)
})
