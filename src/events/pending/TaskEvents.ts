/**
 * Reads the events that accepted and closed tasks, and compares them with the rows of vatproof.tasks. A superuser can change such a row, so a row
 * alone proves nothing.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity } from "#domain/log/Integrity.ts"
import { ConfirmationRefused, ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { ValidationCancelled, ValidationExpired, type ValidationState } from "#domain/validation/ValidationTask.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"
/** Maximum number of callers whose events one statement reads. A caller asks for at most a page of events. */
const maxBatch = 32

/** Creates the functions that read events at the positions in rows, and that refuse a row. */
export const make = Effect.gen(function* () {
  const integrity = yield* Integrity
  const sql = yield* SqlClient.SqlClient
  const { altered, refuseAltered } = yield* SignedLeaves.make
  // LIMIT 1 keeps the planner from a join that reads the whole log.
  const find = SqlSchema.findAll({
    Request: Schema.Array(Schema.BigInt),
    Result: StoredEvent,
    execute: (positions) => sql`SELECT ${sql.literal(StoredEvent.columnsOf("e"))}
      FROM unnest(${sqlArray(positions, elementType.int8)}) AS l(position) CROSS JOIN LATERAL (
        SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events WHERE log_id = ${logId} AND position = l.position LIMIT 1) AS e`
  })
  const refuse = (position: bigint | number) =>
    integrity.refuse("event", `The rows about the event at position ${position} contradict it, or the event is missing`)

  const read = Effect.fnUntraced(function* (asked: ReadonlyArray<ReadonlyArray<bigint>>) {
    const found = yield* find([...new Set(asked.flat())]).pipe(QueryPolicy.withRetryForMany(retryFor))
    const events = new Map(found.map((event) => [BigInt(event.position), event]))
    const changed = new Set((yield* altered(found)).map(({ position }) => BigInt(position)))
    const eventAt = (position: bigint) => {
      const event = events.get(position)
      if (changed.has(position)) return refuseAltered(position)
      return event === undefined ? refuse(position) : Effect.succeed(event)
    }
    return yield* Effect.forEach(asked, (positions) => Effect.exit(Effect.forEach(positions, eventAt)))
  })

  const join = yield* GroupCommit.make({ maxBatch, run: read })
  /** Returns the event at each position, compared with its signed leaf. All waiting callers share the statements. */
  const at = (positions: ReadonlyArray<bigint>) => (positions.length === 0 ? Effect.succeed([]) : join(positions))

  return { at, refuse }
})

/** The state of a task after an event with its id as `causation_id`. */
const states: ReadonlyMap<string, ValidationState> = new Map([
  [VatIdVerified.type, "final"],
  [ReceiptIssued.type, "final"],
  [ValidationExpired.type, "expired"],
  [ValidationCancelled.type, "cancelled"],
  [ConfirmationRefused.type, "cancelled"]
])

/**
 * Returns true if the event closed the task and left it in its state.
 * Compares texts of canonical JSON, whose keys are sorted: the VAT ID of a question is always the last value of its object.
 */
export const isClosedBy = (
  { causation_id, data, type }: StoredEvent,
  task: { readonly id: string; readonly vatId: string; readonly state: ValidationState }
) => causation_id === task.id && states.get(type) === task.state && data.includes(`vat_id":"${task.vatId}"}`)

/** Returns true if the event is of this type, and about the chunk of a batch that begins with the item number `first`. */
export const isOfChunk = ({ data, type }: StoredEvent, ofType: string, batchId: string, first: number) =>
  type === ofType && data.includes(`"batch_id":"${batchId}"`) && data.includes(`,"first":${first},`)
