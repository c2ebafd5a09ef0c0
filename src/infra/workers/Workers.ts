/**
 * The cores of one machine: several processes that listen on one port. This process takes the connections and hands them round
 * (node:cluster); each worker is a whole replica. One that ends is replaced, and none outlives this process.
 */
import cluster, { type Worker } from "node:cluster"
import { Array as Arr, Clock, Deferred, type Duration, Effect, Exit, Queue, Schema, Scope } from "effect"

/** Whether this process is one of them. */
export const isWorker = cluster.isWorker

/** The setting by which a worker knows its number. */
export const numberSetting = "VATPROOF_WORKER"

/** What a worker tells the process that started it. */
const Announcement = Schema.Struct({ adminPort: Schema.Int })
const decodeAnnouncement = Schema.decodeUnknownOption(Announcement)

/** Says, as a worker, where its pages for operators are. */
export const announce = (adminPort: number) =>
  Effect.sync(() => {
    process.send?.({ adminPort } satisfies typeof Announcement.Type)
  })

/** What a worker is told once its successor listens. */
const successorListens = "successor listens"

/** Ends when this process is a worker that has a successor. */
export const untilReplaced = Effect.callback<void>((resume) => {
  const onMessage = (message: unknown) => {
    if (message === successorListens) resume(Effect.void)
  }
  process.on("message", onMessage)
  return Effect.sync(() => process.off("message", onMessage))
})

export interface WorkersOptions {
  readonly count: number
  /** The port they share. */
  readonly port: number
  /** How long a worker may take to stop. */
  readonly patience: Duration.Duration
  /** The admin port of each worker by its number, kept up to date here. */
  readonly adminPorts: Map<number, number>
}

/** A worker ended before any of them had listened: another attempt would change nothing. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {}

/** Milliseconds before a replacement: doubled with each failure in a row. A worker that lived long enough was well. */
const firstPauseMs = 100
const longestPauseMs = 30_000
const wellAfterMs = 60_000
/** How long a renewal waits for one successor. */
const renewalPatience = "1 minute"
/** A worker that was replaced ends after its last connection (HttpListener): at the latest after this time. */
const retirementPatience = "90 seconds"

/** The place of one worker and its successors. Each renewal is answered with whether there is a successor. */
interface Place {
  readonly number: number
  readonly renewals: Queue.Queue<Deferred.Deferred<boolean>>
}

interface Running {
  readonly worker: Worker
  readonly scope: Scope.Closeable
  readonly listening: Deferred.Deferred<void>
  /** Completes with the reason, or null if the worker ended by itself. */
  readonly ended: Deferred.Deferred<string | null>
}

/** Runs them until it is interrupted; then all stop at once. SIGUSR2 replaces them one after the other. */
export const run = Effect.fn("Workers.run")(function* (options: WorkersOptions) {
  const places = yield* Effect.forEach(Arr.range(1, options.count), (number) =>
    Effect.map(Queue.bounded<Deferred.Deferred<boolean>>(1), (renewals): Place => ({ number, renewals }))
  )
  const anyUp = yield* Deferred.make<void>()
  const signals = yield* renewalSignals
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(signals), renewAll(places))))
  const together = yield* Scope.fork(yield* Effect.scope, "parallel")
  yield* Effect.forEach(places, (place) => occupy(place, anyUp, options), { concurrency: "unbounded", discard: true }).pipe(
    Scope.provide(together)
  )
})

/** Keeps a place occupied. */
const occupy = Effect.fnUntraced(function* (place: Place, anyUp: Deferred.Deferred<void>, options: WorkersOptions) {
  let failures = 0
  let running = yield* start(place, anyUp, options)
  let started = yield* Clock.currentTimeMillis
  while (true) {
    const next = yield* Effect.raceFirst(Queue.take(place.renewals), Deferred.await(running.ended))
    if (Deferred.isDeferred(next)) {
      const successor = yield* replace(place, running, anyUp, options)
      yield* Deferred.succeed(next, successor !== running)
      running = successor
      continue
    }
    yield* Scope.close(running.scope, Exit.void)
    if (!(yield* Deferred.isDone(anyUp))) {
      return yield* new WorkerFailed({ message: `A worker ended (${next ?? "of itself"}) before the service was up` })
    }
    const lived = (yield* Clock.currentTimeMillis) - started
    if (next === null) yield* Effect.logInfo(`Worker ${place.number} ended; another one starts`)
    else {
      failures = lived > wellAfterMs ? 1 : failures + 1
      const pauseMs = Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs)
      yield* Effect.logError(`Worker ${place.number} ended (${next}); another one starts in ${pauseMs} ms`)
      yield* Effect.sleep(pauseMs)
    }
    started = yield* Clock.currentTimeMillis
    running = yield* start(place, anyUp, options)
  }
})

/** Starts a process; it ends with its scope. */
const start = Effect.fnUntraced(function* (place: Place, anyUp: Deferred.Deferred<void>, options: WorkersOptions) {
  const { adminPorts, patience, port } = options
  const listening = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<string | null>()
  const scope = yield* Scope.fork(yield* Effect.scope)
  const worker = cluster.fork({ [numberSetting]: String(place.number) })
  let ownAdminPort: number | null = null
  worker.once("exit", (code: number, signal: string | null) => {
    // Unless its successor has taken its place.
    if (adminPorts.get(place.number) === ownAdminPort) adminPorts.delete(place.number)
    Deferred.doneUnsafe(ended, Effect.succeed(code === 0 ? null : (signal ?? `code ${code}`)))
  })
  worker.on("message", (message: unknown) => {
    const announced = decodeAnnouncement(message)
    if (announced._tag === "None") return
    ownAdminPort = announced.value.adminPort
    if (!adminPorts.has(place.number)) adminPorts.set(place.number, ownAdminPort)
  })
  worker.on("listening", (address) => {
    if (address.port !== port) return
    if (ownAdminPort !== null) adminPorts.set(place.number, ownAdminPort)
    Deferred.doneUnsafe(anyUp, Effect.void)
    Deferred.doneUnsafe(listening, Effect.void)
  })
  const running: Running = { worker, scope, listening, ended }
  yield* Scope.addFinalizer(scope, stop(running, patience))
  yield* Effect.logInfo(`Worker ${place.number} is process ${worker.process.pid}`)
  return running
})

/**
 * Starts a successor and, once it listens, leaves the former worker to its connections. Gives the worker that serves from now on, which is the
 * former one if its successor does not come up.
 */
const replace = Effect.fnUntraced(function* (
  place: Place,
  former: Running,
  anyUp: Deferred.Deferred<void>,
  options: WorkersOptions
) {
  const successor = yield* start(place, anyUp, options)
  const failed = Effect.map(Deferred.await(successor.ended), (why) => why ?? "of itself")
  const problem = yield* Effect.raceFirst(Effect.as(Deferred.await(successor.listening), null), failed).pipe(
    Effect.timeoutOrElse({ duration: renewalPatience, orElse: () => Effect.succeed("it does not listen in time") })
  )
  if (problem === null) {
    // It may have ended meanwhile.
    former.worker.send(successorListens, () => undefined)
    const pid = former.worker.process.pid
    yield* Effect.logInfo(`Worker ${place.number} was replaced; process ${pid} ends after its last connection`)
    const retired = Effect.timeoutOption(Deferred.await(former.ended), retirementPatience)
    yield* Effect.forkScoped(Effect.andThen(retired, Scope.close(former.scope, Exit.void)))
    return successor
  }
  yield* Effect.logError(`The successor of worker ${place.number} failed (${problem}); the worker goes on`)
  yield* Scope.close(successor.scope, Exit.void)
  return former
})

/** As SIGTERM does; without ceremony if that takes too long. */
const stop = Effect.fnUntraced(function* ({ ended, worker }: Running, patience: Duration.Duration) {
  worker.process.kill("SIGTERM")
  yield* Deferred.await(ended).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => {
        worker.process.kill("SIGKILL")
        return Deferred.await(ended)
      }
    })
  )
})

/** The listener stays for good: without one, the signal would end this process. */
const renewalSignals = Effect.gen(function* () {
  const signals = yield* Queue.sliding<void>(1)
  const onSignal = () => void Queue.offerUnsafe(signals, undefined)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGUSR2", onSignal)),
    () => Effect.sync(() => process.off("SIGUSR2", onSignal))
  )
  return signals
})

/** Ends with the first place that has no successor: the next one would fail as well. */
const renewAll = Effect.fnUntraced(function* (places: ReadonlyArray<Place>) {
  for (const { renewals } of places) {
    const isRenewed = yield* Deferred.make<boolean>()
    yield* Queue.offer(renewals, isRenewed)
    const renewed = Effect.timeoutOrElse(Deferred.await(isRenewed), {
      duration: "2 minutes",
      orElse: () => Effect.succeed(false)
    })
    if (!(yield* renewed)) return
  }
})
