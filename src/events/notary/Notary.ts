/**
 * The notary: puts the log's events into a Merkle tree and signs its root, about once a second when the log has grown (ARCHITECTURE,
 * "The notary"). Off the way of any request; one replica at a time, and another one within seconds of its end.
 */
import { Effect, Layer, Ref, Schedule, Schema } from "effect"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { Integrity } from "#domain/audit/Integrity.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { TraceLinks } from "#domain/kernel/TraceLinks.ts"
import * as LeafHashes from "#events/notary/LeafHashes.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import { append, empty, type Tree } from "#events/merkle/MerkleTree.ts"
import { type Growth, growths, joined } from "#events/merkle/Tiles.ts"
import type { LogKeys } from "#events/notary/LogSigner.ts"
import * as NotaryLease from "#events/notary/NotaryLease.ts"
import * as LogConsistency from "#events/notary/LogConsistency.ts"
import * as Pacer from "#events/database/Pacer.ts"

/** How often it looks, and so about how old the oldest unsigned event gets. */
const turnEvery = "1 second"
const pauseAfterFailure = "5 seconds"
/** A notary that dies without a word is followed after this long. */
const leaseMs = 4_000
/** Events hashed by one statement, which takes some 6 µs for each: beside callers, and of a backlog. */
const pieceBesideCallers = 512
const pieceOfBacklog = 1_024
/** Events that one checkpoint adds at most. */
const turnMax = 16_384

/** How often a replica that waits for an operator looks whether the log is known by now. */
const lookAgainEvery = "5 seconds"

/** `recall` gives the newest checkpoints that this machine has seen, one for each key that has signed them. */
export interface NotaryOptions<E = never> {
  readonly keys: LogKeys
  readonly recall: Effect.Effect<ReadonlyArray<LogConsistency.SeenCheckpoint>, E>
  readonly remember: (note: string) => Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* <E>({ keys, recall, remember }: NotaryOptions<E>) {
  const { sha256 } = yield* Crypto
  const integrity = yield* Integrity
  const crypto = yield* Crypto
  const log = yield* LogConsistency.make(keys)
  const place = yield* NotaryLease.make(crypto.uuidV7())
  const grow = yield* makeGrow

  const checkpointOf = Effect.fnUntraced(function* (tree: Tree) {
    const next = { origin: keys.name, ...LogConsistency.historyOf(sha256, tree), extensions: [] }
    return { size: tree.size, note: yield* Effect.fromResult(Checkpoint.sign(next, keys.signers)) }
  })

  // The first checkpoint is that of the empty log: from then on events without one are a history that is not known.
  const found = yield* log.recognise(yield* recall)
  if (found.note === null) yield* place.notarize({ ...(yield* checkpointOf(empty)), from: -1, growths: [] })
  const start = found.note === null ? yield* log.follow(empty) : found
  if (start.note !== null) yield* remember(start.note)
  yield* integrity.notary(null)
  const current = yield* Ref.make(start.tree)
  const traceLinks = yield* TraceLinks

  const sign = Effect.fnUntraced(function* (head: number, size: number, pace: Pacer.Pacer) {
    const before = yield* Ref.get(current)
    // Another replica signed meanwhile: go on from there, if it went on from here.
    const tree = before.size === size ? before : (yield* log.follow(before)).tree
    const grown = yield* grow(tree, Math.min(head, tree.size + turnMax), pace)
    const next = yield* checkpointOf(grown.tree)
    // A stop in between would leave this machine without memory of what it has signed.
    const stored = yield* place.notarize({ ...next, from: tree.size, growths: grown.growths }).pipe(
      Effect.tap((isStored) => (isStored ? remember(next.note) : Effect.void)),
      Effect.uninterruptible
    )
    yield* Ref.set(current, stored ? grown.tree : tree)
    if (stored) yield* log.trustSigners
    return grown.tree.size < head
  })

  /** Signs what came since the newest checkpoint. Says whether there is a backlog, to be signed at once. */
  const turn = Effect.fnUntraced(
    function* (isBacklog: boolean) {
      const { granted, head, size } = yield* place.claim(leaseMs)
      if (!granted || head <= size) return false
      const pace =
        isBacklog || head - size > Pacer.backlog ? Pacer.atOnce(pieceOfBacklog) : yield* Pacer.evenly(pieceBesideCallers)
      const asked = { kind: "consumer", root: true, links: traceLinks.between(size, head) } as const
      const attributes = { "vatproof.log.from": size, "vatproof.log.to": head }
      return yield* Effect.withSpan(sign(head, size, pace), "Notary.sign", { ...asked, attributes })
    },
    Effect.mapError((error) => (error._tag === "StoreUnavailable" ? error : forked(error.message)))
  )

  yield* Effect.forkScoped(keepTurning(turn, integrity))
  yield* Effect.addFinalizer(() => Effect.ignore(place.release))
})

const forked = (message: string) => new LogConsistency.LogForked({ message })

/** Puts the leaves of the events up to `to` into the tree. */
const makeGrow = Effect.gen(function* () {
  const { sha256 } = yield* Crypto
  const leafHashes = yield* LeafHashes.make

  return Effect.fnUntraced(function* (tree: Tree, to: number, pace: Pacer.Pacer) {
    // What goes into the tiles is taken from each batch at once: its nodes are thousands of small objects, dear to keep until the end.
    const parts: Array<Growth> = []
    let grown = tree
    while (grown.size < to) {
      yield* pace.wait(grown.size - tree.size, to - tree.size)
      const added = append(sha256, grown, yield* leafHashes({ from: grown.size, to: Math.min(to, grown.size + pace.piece) }))
      parts.push(...growths(added.nodes))
      grown = added.tree
    }
    return { tree: grown, growths: joined(parts) }
  })
})

/** Never ends, except where the log is not what was signed: then this replica signs nothing more. */
const keepTurning = (
  turn: (isBacklog: boolean) => Effect.Effect<boolean, StoreUnavailable | LogConsistency.LogForked>,
  integrity: Integrity["Service"]
) =>
  turn(false).pipe(
    Effect.flatMap((more) => (more ? Effect.repeat(turn(true), { while: (more) => more }) : Effect.succeed(false))),
    Effect.catchTag("StoreUnavailable", (error) =>
      Effect.andThen(Effect.logWarning("The notary waits for the database", error), Effect.sleep(pauseAfterFailure))
    ),
    logDefects("The notary stumbled; it looks again", pauseAfterFailure),
    Effect.repeat(Schedule.fixed(turnEvery)),
    Effect.catchTag("LogForked", ({ message }) =>
      Effect.andThen(
        integrity.notary(message),
        Effect.logError(`The notary stopped and signs nothing more: ${message}; ${advice}`)
      )
    )
  )

const isForked = Schema.is(LogConsistency.LogForked)

const advice =
  'verify the log with every checkpoint that was kept ("vatproof audit verify"); only if it is the right one, "vatproof notary adopt"'

/** Runs the notary beside whatever else the layer serves; refuses to build on a log that it does not know (LogForked). */
export const layer = <E>(options: NotaryOptions<E>) => Layer.effectDiscard(make(options))

/** The same, but waits until an operator has restored or adopted the log, and says so meanwhile: nothing is served before. */
export const layerOnceKnown = <E>(options: NotaryOptions<E>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const integrity = yield* Integrity
      const told = yield* Ref.make("")
      const tell = Effect.fnUntraced(function* ({ message }: LogConsistency.LogForked) {
        yield* integrity.notary(`${message}; ${advice}`)
        if ((yield* Ref.getAndSet(told, message)) === message) return
        yield* Effect.logError(`The notary does not know the log, and the service does not start: ${message}; ${advice}`)
      })
      yield* make(options).pipe(
        Effect.tapError((error) => (isForked(error) ? tell(error) : Effect.void)),
        Effect.retry({ schedule: Schedule.spaced(lookAgainEvery), while: isForked })
      )
    })
  )
