/** A log in a new database, signed by a notary as in a service. */
import { Effect, Layer, Option, Result, Schedule, type Schema } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import type { LogKeys } from "#events/log/notary/LogSigner.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { keysOf, log, signer } from "#test/support/log/Keys.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** The log of a given database. */
export const groundOn = TreeStore.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layerOn),
  Layer.provideMerge(Layer.mergeAll(NodeCrypto.layer, Integrity.layer))
)

/** A log that no notary has signed. */
export const ground = groundOn.pipe(Layer.provideMerge(TestDatabase.layer))

/** A notary on the machine that stored the newest checkpoint of the database. */
export const notaryOf = (keys: LogKeys) =>
  Layer.unwrap(
    Effect.map(TreeStore, ({ newest }) => {
      const loadSeen = Effect.map(newest, (checkpoint) => Option.toArray(checkpoint).map(({ note }) => ({ note, at: "a file" })))
      return Notary.layer({ keys, loadSeen, saveSeen: () => Effect.void })
    })
  )

const notary = notaryOf(keysOf(signer))

/** A log with one checkpoint, which signs the empty log. */
export const layer = Layer.fresh(Layer.effectDiscard(Effect.scoped(Layer.build(notary)))).pipe(Layer.provideMerge(ground))

export interface Fact {
  readonly stream: string
  readonly type: string
  readonly data: Schema.Json
  /** The content of the event's personal document. */
  readonly personal?: Schema.Json
  /** The meter that the event charges one unit. */
  readonly meter?: string
}

/** Appends facts. Keeps their order within each stream. */
export const appendAll = Effect.fnUntraced(function* (facts: ReadonlyArray<Fact>) {
  const events = yield* EventStore
  yield* Effect.forEach(
    facts,
    ({ data, meter, personal, stream, type }) =>
      events.append({
        stream,
        expectedVersion: null,
        events: [
          {
            type,
            schemaVersion: 1,
            data,
            ...(personal === undefined ? {} : { personal: { retention: "answers", document: personal } })
          }
        ],
        charge: meter === undefined ? null : { meter, units: 1, cap: 1_000_000_000 }
      }),
    { concurrency: 500, discard: true }
  )
})

/** Waits until the newest checkpoint covers this number of events. */
export const untilSigned = Effect.fnUntraced(function* (size: number) {
  const { newest } = yield* TreeStore
  const reached = yield* newest.pipe(
    Effect.repeat({ until: Option.exists((checkpoint) => checkpoint.size >= size), schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("60 seconds")
  )
  const { note } = Option.getOrThrow(reached)
  return { ...Result.getOrThrow(Checkpoint.open(NodeCrypto.pureCrypto, note, log)), note }
})

/** Runs a notary until a checkpoint covers `size` events. Then the notary stops and releases its lease. */
export const sign = (size: number) =>
  Effect.gen(function* () {
    yield* Layer.build(Layer.fresh(notary))
    return yield* untilSigned(size)
  }).pipe(Effect.scoped)
