/**
 * Runs several worker processes that share one port, one per core (node:cluster). The process that starts the workers accepts the
 * connections and distributes them. Each worker is a complete replica. A worker that ends is replaced, and no worker outlives the
 * process that started it.
 */
import cluster, { type Worker } from "node:cluster"
import { Array as Arr, Clock, Deferred, type Duration, Effect, Exit, Queue, Schema, Scope } from "effect"
import { workerNumber } from "#infra/config/SettingNames.ts"

/** True in a worker process. */
export const isWorker = cluster.isWorker

/** The message with which a worker tells its admin port to the process that started it. */
const Announcement = Schema.Struct({ adminPort: Schema.Int })
const decodeAnnouncement = Schema.decodeUnknownOption(Announcement)

/** Sends the admin port of this worker to the process that started it. */
export const announce = (adminPort: number) =>
  Effect.sync(() => {
    process.send?.({ adminPort } satisfies typeof Announcement.Type)
  })

/** The message to a worker once its successor listens. */
const successorListens = "successor listens"

/** Completes when this process is a worker with a successor. */
export const untilReplaced = Effect.callback<void>((resume) => {
  const onMessage = (message: unknown) => {
    if (message === successorListens) resume(Effect.void)
  }
  process.on("message", onMessage)
  return Effect.sync(() => process.off("message", onMessage))
})

export interface WorkersOptions {
  readonly count: number
  /** The shared port. */
  readonly port: number
  /** Timeout of a worker's stop. */
  readonly stopTimeout: Duration.Duration
  /** The admin port of each worker, by the worker's number. `run` keeps these entries up to date. */
  readonly adminPorts: Map<number, number>
}

/** A worker ended before any worker listened. A retry would fail again. */
export class WorkerFailed extends Schema.TaggedError<WorkerFailed>()("WorkerFailed", { message: Schema.String }) {}

/**
 * The pause before a replacement doubles with each consecutive failure. It is reset after a worker that lived for `wellAfterMs`.
 */
const firstPauseMs = 100
const longestPauseMs = 30_000
const wellAfterMs = 60_000
/** Timeout of a replacement: how long it waits until the successor listens. */
const renewalTimeout = "1 minute"
/** A replaced worker ends after its last connection (HttpListener), or after this time. */
const retirementTimeout = "90 seconds"

/**
 * The place of one worker, which its successor takes over. `renewals` are requests to replace the worker. Each request completes
 * with true if a successor listens.
 */
interface Slot {
  readonly number: number
  readonly renewals: Queue.Queue<Deferred.Deferred<boolean>>
}

interface Running {
  readonly worker: Worker
  readonly scope: Scope.Closeable
  readonly listening: Deferred.Deferred<void>
  /** Completes with the signal or exit code that ended the worker; null for exit code 0. */
  readonly ended: Deferred.Deferred<string | null>
}

/**
 * Runs the workers until it is interrupted, and then stops all workers at the same time. On the signal SIGUSR2, it replaces the
 * workers one after the other.
 */
export const run = Effect.fn("Workers.run")(function* (options: WorkersOptions) {
  const slots = yield* Effect.forEach(Arr.range(1, options.count), (number) =>
    Effect.map(Queue.bounded<Deferred.Deferred<boolean>>(1), (renewals): Slot => ({ number, renewals }))
  )
  const anyUp = yield* Deferred.make<void>()
  const signals = yield* renewalSignals
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(signals), renewAll(slots))))
  const together = yield* Scope.fork(yield* Effect.scope, "parallel")
  yield* Effect.forEach(slots, (slot) => occupy(slot, anyUp, options), { concurrency: "unbounded", discard: true }).pipe(
    Scope.provide(together)
  )
})

/**
 * Keeps one worker running. Starts a successor when the worker ends, or when a replacement is requested. Fails only if a worker
 * ends before any worker has listened.
 */
const occupy = Effect.fnUntraced(function* (slot: Slot, anyUp: Deferred.Deferred<void>, options: WorkersOptions) {
  let failures = 0
  let running = yield* start(slot, anyUp, options)
  let started = yield* Clock.currentTimeMillis
  while (true) {
    const next = yield* Effect.raceFirst(Queue.take(slot.renewals), Deferred.await(running.ended))
    if (Deferred.isDeferred(next)) {
      const successor = yield* replace(slot, running, anyUp, options)
      yield* Deferred.succeed(next, successor !== running)
      running = successor
      continue
    }
    yield* Scope.close(running.scope, Exit.void)
    if (!(yield* Deferred.isDone(anyUp))) {
      return yield* new WorkerFailed({ message: `A worker ended (${next ?? "without an error"}) before the service was up` })
    }
    const lived = (yield* Clock.currentTimeMillis) - started
    if (next === null) yield* Effect.logInfo(`Worker ${slot.number} ended; starting its successor`)
    else {
      failures = lived > wellAfterMs ? 1 : failures + 1
      const pauseMs = Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs)
      yield* Effect.logError(`Worker ${slot.number} ended (${next}); starting its successor in ${pauseMs} ms`)
      yield* Effect.sleep(pauseMs)
    }
    started = yield* Clock.currentTimeMillis
    running = yield* start(slot, anyUp, options)
  }
})

/** Starts a worker process, which ends with its scope. */
const start = Effect.fnUntraced(function* (slot: Slot, anyUp: Deferred.Deferred<void>, options: WorkersOptions) {
  const { adminPorts, stopTimeout, port } = options
  const listening = yield* Deferred.make<void>()
  const ended = yield* Deferred.make<string | null>()
  const scope = yield* Scope.fork(yield* Effect.scope)
  const worker = cluster.fork({ [workerNumber]: String(slot.number) })
  let ownAdminPort: number | null = null
  worker.once("exit", (code: number, signal: string | null) => {
    // Keeps the entry if it already contains the port of the worker's successor.
    if (adminPorts.get(slot.number) === ownAdminPort) adminPorts.delete(slot.number)
    Deferred.doneUnsafe(ended, Effect.succeed(code === 0 ? null : (signal ?? `code ${code}`)))
  })
  worker.on("message", (message: unknown) => {
    const announced = decodeAnnouncement(message)
    if (announced._tag === "None") return
    ownAdminPort = announced.value.adminPort
    if (!adminPorts.has(slot.number)) adminPorts.set(slot.number, ownAdminPort)
  })
  worker.on("listening", (address) => {
    if (address.port !== port) return
    if (ownAdminPort !== null) adminPorts.set(slot.number, ownAdminPort)
    Deferred.doneUnsafe(anyUp, Effect.void)
    Deferred.doneUnsafe(listening, Effect.void)
  })
  const running: Running = { worker, scope, listening, ended }
  yield* Scope.addFinalizer(scope, stop(running, stopTimeout))
  yield* Effect.logInfo(`Worker ${slot.number} is process ${worker.process.pid}`)
  return running
})

/**
 * Starts a successor. Once it listens, the former worker serves only its open connections. Returns the worker that accepts new
 * connections: the successor, or the former worker if the successor does not listen.
 */
const replace = Effect.fnUntraced(function* (
  slot: Slot,
  former: Running,
  anyUp: Deferred.Deferred<void>,
  options: WorkersOptions
) {
  const successor = yield* start(slot, anyUp, options)
  const failed = Effect.map(Deferred.await(successor.ended), (why) => why ?? "it ended without an error")
  const problem = yield* Effect.raceFirst(Effect.as(Deferred.await(successor.listening), null), failed).pipe(
    Effect.timeoutOrElse({ duration: renewalTimeout, orElse: () => Effect.succeed("it did not start to listen in time") })
  )
  if (problem === null) {
    // Ignores the error if the former worker has just ended.
    former.worker.send(successorListens, () => undefined)
    const pid = former.worker.process.pid
    yield* Effect.logInfo(`Worker ${slot.number} was replaced; process ${pid} ends after its last connection`)
    const retired = Effect.timeoutOption(Deferred.await(former.ended), retirementTimeout)
    yield* Effect.forkScoped(Effect.andThen(retired, Scope.close(former.scope, Exit.void)))
    return successor
  }
  yield* Effect.logError(`The successor of worker ${slot.number} failed (${problem}); the worker continues`)
  yield* Scope.close(successor.scope, Exit.void)
  return former
})

/** Sends SIGTERM, then SIGKILL after the timeout. */
const stop = Effect.fnUntraced(function* ({ ended, worker }: Running, stopTimeout: Duration.Duration) {
  worker.process.kill("SIGTERM")
  yield* Deferred.await(ended).pipe(
    Effect.timeoutOrElse({
      duration: stopTimeout,
      orElse: () => {
        worker.process.kill("SIGKILL")
        return Deferred.await(ended)
      }
    })
  )
})

/** Receives SIGUSR2. The listener stays registered, because without it the signal would end this process. */
const renewalSignals = Effect.gen(function* () {
  const signals = yield* Queue.sliding<void>(1)
  const onSignal = () => void Queue.offerUnsafe(signals, undefined)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGUSR2", onSignal)),
    () => Effect.sync(() => process.off("SIGUSR2", onSignal))
  )
  return signals
})

/** Replaces the workers one after the other. Stops if a successor fails, because the next successor would fail as well. */
const renewAll = Effect.fnUntraced(function* (slots: ReadonlyArray<Slot>) {
  for (const { renewals } of slots) {
    const isRenewed = yield* Deferred.make<boolean>()
    yield* Queue.offer(renewals, isRenewed)
    const renewed = Effect.timeoutOrElse(Deferred.await(isRenewed), {
      duration: "2 minutes",
      orElse: () => Effect.succeed(false)
    })
    if (!(yield* renewed)) return
  }
})
