/** Builds batches of commands for vatproof.append, and reads the rows that they write. */
import { Data, Deferred, Effect, type Exit, Result, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { AppendError, Appended, EventRow, Prepared } from "#events/log/store/AppendCommand.ts"
import * as Rows from "#test/support/Rows.ts"

/** Short description of an append command and of its effects. */
export interface Step {
  readonly stream: string
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  /** VAT ID of the answer in the last event of the command; null without an answer. */
  readonly latest: string | null
  /** Time of the answer for `latest` by the source's clock, in ISO 8601. */
  readonly answeredAt: string
  /** Precondition that the cached answer for the VAT ID `key` is the newest one. `isRight` states whether the precondition holds. */
  readonly newest: { readonly key: string; readonly isRight: boolean } | null
  readonly minute: { readonly bucket: string; readonly limit: number } | null
  readonly epoch: number | null
  readonly events: number
  readonly expected: number | null
  /** Id of the API key whose receipt contains the answer; null for no receipt. */
  readonly list: string | null
}

export const plain: Step = {
  stream: "a",
  charge: null,
  latest: null,
  answeredAt: "2026-01-01T00:00:00.000Z",
  newest: null,
  minute: null,
  epoch: null,
  events: 1,
  expected: null,
  list: null
}

const orNull = (value: number | null | undefined) => (value === null || value === undefined ? null : BigInt(value))

const tested = { type: "Tested", data: '{"kind":"data"}' }

/** Builds the last event of a command: an answer for `latest`, as a receipt if `list` is set. */
const lastOf = ({ answeredAt, latest, list }: Step) => {
  if (latest === null) return tested
  const answer = `{"answered_at":"${answeredAt}","company_address":null,"company_name":null,"source":"vies","valid":true}`
  if (list === null) return { type: "VatIdVerified", data: `{"answer":${answer},"vat_id":"${latest}"}` }
  const receipt = `{"result":{"official_address":"","official_name":""},"target_vat_id":"${latest}"}`
  return { type: "ReceiptIssued", data: `{"account_id":"of-${list}","answer":${answer},"key_id":"${list}","receipt":${receipt}}` }
}

/** Builds the command of a step and its rows. `positions` maps VAT IDs to the positions of their newest answers. */
export const prepare = (step: Step, positions: ReadonlyMap<string, number> = new Map()): Prepared => {
  const { charge, epoch, events, expected, minute, newest, stream } = step
  const position = newest === null ? 0 : (positions.get(newest.key) ?? 0) + (newest.isRight ? 0 : 1)
  const event = { type: "Tested", schemaVersion: 1, data: {} }
  const rowOf = ({ data, type }: typeof tested, index: number): EventRow => ({
    stream,
    eventId: SecureRandom.uuidV7Unsafe(),
    type,
    schemaVersion: 1,
    occurredAtMs: 1_800_000_000_000,
    correlationId: SecureRandom.uuidV7Unsafe(),
    causationId: null,
    traceId: new Uint8Array(16).fill(7),
    data,
    metadata: '{"kind":"metadata"}',
    meter: charge?.meter ?? null,
    units: index === 0 ? (charge?.units ?? 0) : 0,
    cap: orNull(charge?.cap),
    expected: orNull(expected),
    epoch: orNull(epoch),
    answerKey: newest === null ? null : `answer-${newest.key}`,
    answerPosition: newest === null ? null : BigInt(position),
    minuteLimit: minute?.limit ?? null
  })
  const command = {
    stream,
    expectedVersion: expected,
    events: [event] as const,
    charge,
    precondition: { epoch, newest: newest === null ? null : { key: `answer-${newest.key}`, asOf: position } },
    minute: minute ?? undefined
  }
  const facts = Array.from({ length: events }, (_, index) => (index === events - 1 ? lastOf(step) : tested))
  return { command, rows: facts.map(rowOf), documents: [] }
}

/** Returns the outcome of a command without its times and without the version of a conflict. */
export const outcomeOf = (exit: Exit.Exit<Appended, AppendError>) =>
  Effect.map(
    Effect.result(exit),
    Result.match({
      onSuccess: ({ minute, position, used }) => ({ position, used, taken: minute?.taken ?? null }),
      onFailure: (error) => {
        switch (error._tag) {
          case "VersionConflict":
            return { refused: error._tag, stream: error.stream }
          case "PreconditionFailed":
            return { refused: error._tag, outdated: error.outdated }
          case "QuotaReached":
            return { refused: error._tag, meter: error.meter, used: error.used, taken: error.minute?.taken ?? null }
          case "RateLimitReached":
            return { refused: error._tag, used: error.used, taken: error.minute.taken }
          case "StoreUnavailable":
            return { refused: error._tag }
        }
      }
    })
  )

/** Returns the column `text` of the rows of a statement. */
export const texts = Effect.fnUntraced(function* (statement: string) {
  return (yield* Rows.all({ text: Schema.String }, (sql) => sql.unsafe(statement).unprepared)).map(({ text }) => text)
})

/** Returns all rows that an append writes, without times. Omits meters at zero. */
export const written = texts(`
  SELECT concat_ws(' ', 'event', position, stream_id, version, event_id, type, schema_version, occurred_at, correlation_id, causation_id,
    trace_id, meter_id, units, data, metadata) AS text FROM vatproof.events
  UNION ALL SELECT concat_ws(' ', 'stream', stream_id, version, first_position, last_position) FROM vatproof.streams
  UNION ALL SELECT concat_ws(' ', 'meter', meter_id, used) FROM vatproof.meters WHERE used > 0
  UNION ALL SELECT concat_ws(' ', 'latest', key, position, answered_at, answer) FROM vatproof.latest
  UNION ALL SELECT concat_ws(' ', 'listed', list, position) FROM vatproof.listed
  UNION ALL SELECT concat_ws(' ', 'minute', bucket, taken) FROM vatproof.rate_windows WHERE taken > 0
  UNION ALL SELECT concat_ws(' ', 'head', next_position) FROM vatproof.logs ORDER BY 1`)

class RolledBack extends Data.TaggedError("RolledBack") {}

/** Runs an effect in a transaction, rolls the transaction back, and returns the result. */
export const undone = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const result = yield* Deferred.make<A, E>()
  yield* Effect.exit(effect).pipe(
    Effect.tap((exit) => Deferred.done(result, exit)),
    Effect.andThen(new RolledBack()),
    sql.withTransaction,
    Effect.catchTag("RolledBack", () => Effect.void)
  )
  return yield* Deferred.await(result)
})
