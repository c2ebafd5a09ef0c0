/**
 * The notary: puts the log's events into a Merkle tree and signs its root, about once a second when the log has grown (ARCHITECTURE,
 * "The notary"). Off the way of any request; one replica at a time, and another one within seconds of its end.
 */
import { Effect, Layer, Ref, Schedule } from "effect"
import { survivable } from "#domain/Survivable.ts"
import { Randomness } from "#domain/Randomness.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { TraceLinks } from "#domain/TraceLinks.ts"
import * as LeafHashes from "#events/LeafHashes.ts"
import * as Checkpoint from "#events/log/Checkpoint.ts"
import { LogCrypto } from "#events/log/LogCrypto.ts"
import { append, empty, root, type Tree } from "#events/log/MerkleTree.ts"
import { type Growth, growths, joined } from "#events/log/Tiles.ts"
import type { LogKeys } from "#events/LogSigner.ts"
import type { Verifiers } from "#events/log/NoteKeys.ts"
import * as NotaryPlace from "#events/NotaryPlace.ts"
import * as SignedLog from "#events/SignedLog.ts"
import * as TurnPace from "#events/TurnPace.ts"

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

/** A checkpoint that is kept outside the database, and where. */
export interface SeenCheckpoint {
  readonly note: string
  readonly at: string
}

/** `seen` are the newest checkpoints that this machine has seen, one for each key that has signed them. */
export interface NotaryOptions {
  readonly keys: LogKeys
  readonly seen: ReadonlyArray<SeenCheckpoint>
  readonly remember: (note: string) => Effect.Effect<void>
}

const make = Effect.fnUntraced(function* ({ keys, remember, seen }: NotaryOptions) {
  const crypto = yield* LogCrypto
  const { sha256 } = crypto
  const random = yield* Randomness
  const log = yield* SignedLog.make(keys)
  const place = yield* NotaryPlace.make(yield* random.uuidV7)
  const grow = yield* makeGrow

  const historyOf = (tree: Tree) => ({ size: tree.size, root: root(sha256, tree) })

  // Who has a former key could otherwise sign another history with it, and have that one signed with ours.
  const isOurs = (note: string) => Checkpoint.signersOf(crypto, note, keys.signers).length > 0
  const counting = yield* Ref.make<Verifiers>(seen.some(({ note }) => isOurs(note)) ? keys.signers : keys.verifiers)
  const loadFrom = Effect.fnUntraced(function* (known: SignedLog.KnownHistory) {
    const loaded = yield* log.load(known, yield* Ref.get(counting))
    if (loaded.note !== null && isOurs(loaded.note)) yield* Ref.set(counting, keys.signers)
    return loaded
  })
  const load = ({ at, note }: SeenCheckpoint) =>
    log.read(note).pipe(
      Effect.flatMap(loadFrom),
      Effect.catchTag("LogForked", ({ message }) => Effect.fail(forked(`${message} (${advice(at)})`)))
    )
  const loaded = yield* Effect.forEach(seen, load)
  const start = loaded.at(-1) ?? (yield* loadFrom(historyOf(empty)))
  yield* log.compare(start.tree)
  if (start.note !== null) yield* remember(start.note)
  const current = yield* Ref.make(start.tree)
  const traceLinks = yield* TraceLinks

  const sign = Effect.fnUntraced(function* (head: number, size: number, pace: TurnPace.TurnPace) {
    const before = yield* Ref.get(current)
    // Another replica signed meanwhile: go on from there, if it went on from here.
    const tree = before.size === size ? before : (yield* loadFrom(historyOf(before))).tree
    const grown = yield* grow(tree, Math.min(head, tree.size + turnMax), pace)
    const next = { origin: keys.name, ...historyOf(grown.tree), extensions: [] }
    const note = yield* Effect.fromResult(Checkpoint.sign(next, keys.signers))
    // A stop in between would leave this machine without memory of what it has signed.
    const stored = yield* place.notarize({ ...next, from: tree.size, note, growths: grown.growths }).pipe(
      Effect.tap((isStored) => (isStored ? remember(note) : Effect.void)),
      Effect.uninterruptible
    )
    yield* Ref.set(current, stored ? grown.tree : tree)
    if (stored) yield* Ref.set(counting, keys.signers)
    return grown.tree.size < head
  })

  /** Signs what came since the newest checkpoint. Says whether there is a backlog, to be signed at once. */
  const turn = Effect.fnUntraced(
    function* (isBacklog: boolean) {
      const { granted, head, size } = yield* place.claim(leaseMs)
      if (!granted || head <= size) return false
      const pace =
        isBacklog || head - size > TurnPace.backlog ? TurnPace.atOnce(pieceOfBacklog) : yield* TurnPace.evenly(pieceBesideCallers)
      const asked = { kind: "consumer", root: true, links: traceLinks.between(size, head) } as const
      const attributes = { "vatproof.log.from": size, "vatproof.log.to": head }
      return yield* Effect.withSpan(sign(head, size, pace), "Notary.sign", { ...asked, attributes })
    },
    Effect.mapError((error) => (error._tag === "StoreUnavailable" ? error : forked(error.message)))
  )

  yield* Effect.forkScoped(keepTurning(turn))
  yield* Effect.addFinalizer(() => Effect.ignore(place.release))
})

const forked = (message: string) => new SignedLog.LogForked({ message })

const advice = (file: string) =>
  `this machine knows it from ${file}: remove that file only if you know why the log is another one`

/** Puts the leaves of the events up to `to` into the tree. */
const makeGrow = Effect.gen(function* () {
  const { sha256 } = yield* LogCrypto
  const leafHashes = yield* LeafHashes.make

  return Effect.fnUntraced(function* (tree: Tree, to: number, pace: TurnPace.TurnPace) {
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
const keepTurning = (turn: (isBacklog: boolean) => Effect.Effect<boolean, StoreUnavailable | SignedLog.LogForked>) =>
  turn(false).pipe(
    Effect.flatMap((more) => (more ? Effect.repeat(turn(true), { while: (more) => more }) : Effect.succeed(false))),
    Effect.catchTag("StoreUnavailable", (error) =>
      Effect.andThen(Effect.logWarning("The notary waits for the database", error), Effect.sleep(pauseAfterFailure))
    ),
    survivable("The notary stumbled; it looks again", pauseAfterFailure),
    Effect.repeat(Schedule.fixed(turnEvery)),
    Effect.catchTag("LogForked", (error) => Effect.logError(`The notary stopped and signs nothing more: ${error.message}`))
  )

/** Runs the notary beside whatever else the layer serves; refuses to build on a log that was cut or changed (LogForked). */
export const layer = (options: NotaryOptions) => Layer.effectDiscard(make(options))
