/**
 * The notary adds the leaves of new events to the Merkle tree and signs a checkpoint with the root of the tree, about once a second
 * while the log grows. It runs in the background on one replica. If this replica dies, another one takes over within seconds.
 */
import { Effect, Layer, Ref, Schedule, Schema } from "effect"
import * as Worker from "#domain/concurrency/Worker.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { TraceLinks } from "#domain/telemetry/TraceLinks.ts"
import * as LeafHashes from "#events/log/notary/LeafHashes.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { append, empty, type Tree } from "#events/log/merkle/MerkleTree.ts"
import { type Growth, growths, joined } from "#events/log/merkle/Tiles.ts"
import type { LogKeys } from "#events/log/notary/LogSigner.ts"
import * as NotaryLease from "#events/log/notary/NotaryLease.ts"
import * as NotaryRefusals from "#events/log/notary/NotaryRefusals.ts"
import * as Pacer from "#events/log/database/Pacer.ts"

/** Interval between two checkpoints while the log grows. An event is signed about this long after its append. */
const pollInterval = "1 second"
const pauseAfterFailure = "5 seconds"
/** Duration of the notary's lease. If the replica with the lease dies, another replica takes over after this time. */
const leaseMs = 4_000
/**
 * Maximum number of events that one SQL statement hashes (6 µs per event). The larger number applies while the notary is far behind
 * the log.
 */
const liveBatchSize = 512
const backlogBatchSize = 1_024
/** Maximum number of events that one checkpoint adds. */
const maxEventsPerCheckpoint = 16_384

/** How often a waiting replica checks whether an operator has restored or adopted the log. */
const recheckInterval = "5 seconds"

/**
 * `loadSeen` returns the newest checkpoints that this machine stored outside the database, one per signing key. `saveSeen` stores a
 * newer checkpoint there.
 */
export interface NotaryOptions<E = never> {
  readonly keys: LogKeys
  readonly loadSeen: Effect.Effect<ReadonlyArray<NotaryRefusals.SeenCheckpoint>, E>
  readonly saveSeen: (note: string) => Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* <E>({ keys, loadSeen, saveSeen }: NotaryOptions<E>) {
  const { sha256 } = yield* Crypto
  const integrity = yield* Integrity
  const crypto = yield* Crypto
  const log = yield* NotaryRefusals.make(keys)
  const lease = yield* NotaryLease.make(crypto.uuidV7())
  const grow = yield* makeGrow

  const checkpointOf = Effect.fnUntraced(function* (tree: Tree) {
    const next = { origin: keys.name, ...NotaryRefusals.historyOf(sha256, tree), extensions: [] }
    return { size: tree.size, note: yield* Effect.fromResult(Checkpoint.sign(next, keys.signers)) }
  })

  // The first checkpoint covers a log that only has the event that opened it. Therefore the notary refuses a log that has other events
  // but no checkpoint.
  const recognised = yield* log.recognise(yield* loadSeen)
  if (recognised.note === null) {
    const { growths, tree } = yield* grow(empty, recognised.unsigned, Pacer.atOnce(1))
    yield* lease.notarize({ ...(yield* checkpointOf(tree)), from: -1, growths })
  }
  const start = recognised.note === null ? yield* log.follow(empty) : recognised
  if (start.note !== null) yield* saveSeen(start.note)
  yield* integrity.notary(null)
  const current = yield* Ref.make(start.tree)
  const traceLinks = yield* TraceLinks

  const sign = Effect.fnUntraced(function* (head: number, size: number, pace: Pacer.Pacer) {
    const before = yield* Ref.get(current)
    // If another replica has signed a newer checkpoint, the notary continues with the tree of that checkpoint. That tree must
    // extend the tree that this replica knows.
    const tree = before.size === size ? before : (yield* log.follow(before)).tree
    const grown = yield* grow(tree, Math.min(head, tree.size + maxEventsPerCheckpoint), pace)
    const next = yield* checkpointOf(grown.tree)
    // Uninterruptible, because this machine must record each checkpoint that it signed.
    const stored = yield* lease.notarize({ ...next, from: tree.size, growths: grown.growths }).pipe(
      Effect.tap((isStored) => (isStored ? saveSeen(next.note) : Effect.void)),
      Effect.uninterruptible
    )
    yield* Ref.set(current, stored ? grown.tree : tree)
    if (stored) yield* log.trustSigners
    return grown.tree.size < head
  })

  /** Signs the events after the newest checkpoint. Returns true if unsigned events remain, so that the next iteration starts without a pause. */
  const iteration = Effect.fnUntraced(
    function* (isBacklog: boolean) {
      const { granted, head, size } = yield* lease.claim(leaseMs)
      if (!granted || head <= size) return false
      const pace = isBacklog || head - size > Pacer.backlog ? Pacer.atOnce(backlogBatchSize) : yield* Pacer.evenly(liveBatchSize)
      const spanOptions = { kind: "consumer", root: true, links: traceLinks.between(size, head) } as const
      const attributes = { "vatproof.log.from": size, "vatproof.log.to": head }
      return yield* Effect.withSpan(sign(head, size, pace), "Notary.sign", { ...spanOptions, attributes })
    },
    Effect.mapError((error) => (error._tag === "StoreUnavailable" ? error : forked(error.message)))
  )

  // Finalizers run in reverse order of their registration. This finalizer is registered before the loop is forked, so it releases
  // the lease after the loop has ended.
  yield* Effect.addFinalizer(() => Effect.ignore(lease.release))
  const iterations = iteration(false).pipe(
    Effect.flatMap((more) => (more ? Effect.repeat(iteration(true), { while: (more) => more }) : Effect.succeed(false))),
    Effect.tapErrorTag("StoreUnavailable", (error) =>
      Effect.logWarning("The log could not be signed, because the database is unavailable; retrying in 5 s", error)
    ),
    // If the log contradicts the signed history, this replica stops signing.
    Effect.catchTag("LogForked", ({ message }) =>
      Effect.andThen(
        integrity.notary(message),
        Effect.logError(`The notary stopped signing the log: ${message}; ${advice}`)
      ).pipe(Effect.andThen(Effect.never))
    )
  )
  yield* Worker.loop("Signing the log", iterations, { schedule: Schedule.fixed(pollInterval), afterFailure: pauseAfterFailure })
})

const forked = (message: string) => new NotaryRefusals.LogForked({ message })

/** Creates a function that extends a tree with the leaves of the events up to `to`. Returns the tree and the growth of its tiles. */
const makeGrow = Effect.gen(function* () {
  const { sha256 } = yield* Crypto
  const leafHashes = yield* LeafHashes.make

  return Effect.fnUntraced(function* (tree: Tree, to: number, pace: Pacer.Pacer) {
    // Groups the new nodes by tile after each read, because keeping thousands of small node objects is expensive.
    const parts: Array<Growth> = []
    let grown = tree
    while (grown.size < to) {
      yield* pace.wait(grown.size - tree.size, to - tree.size)
      const added = append(sha256, grown, yield* leafHashes({ from: grown.size, to: Math.min(to, grown.size + pace.batchSize) }))
      parts.push(...growths(added.nodes))
      grown = added.tree
    }
    return { tree: grown, growths: joined(parts) }
  })
})

const isForked = Schema.is(NotaryRefusals.LogForked)

const advice =
  'run "vatproof audit verify" with every checkpoint that you kept, and run "vatproof notary adopt" only if this log is the correct one'

/** Runs the notary for the lifetime of the layer. Fails with LogForked if the notary refuses the log (NotaryRefusals.ts). */
export const layer = <E>(options: NotaryOptions<E>) => Layer.effectDiscard(make(options))

/** Runs the notary. If it refuses the log, logs the reason and waits until an operator has restored or adopted the log. */
export const layerOnceKnown = <E>(options: NotaryOptions<E>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const integrity = yield* Integrity
      const logged = yield* Ref.make("")
      const logOnce = Effect.fnUntraced(function* ({ message }: NotaryRefusals.LogForked) {
        yield* integrity.notary(`${message}; ${advice}`)
        if ((yield* Ref.getAndSet(logged, message)) === message) return
        yield* Effect.logError(`The service does not start, because the notary refuses to sign this log: ${message}; ${advice}`)
      })
      yield* make(options).pipe(
        Effect.tapError((error) => (isForked(error) ? logOnce(error) : Effect.void)),
        Effect.retry({ schedule: Schedule.spaced(recheckInterval), while: isForked })
      )
    })
  )
