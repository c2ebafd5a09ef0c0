/**
 * The cores of one machine: several processes that listen on one port. This process takes the connections and hands them round
 * (node:cluster); each worker is a whole replica. One that ends is replaced, and none outlives this process.
 */
import cluster, { type Worker } from "node:cluster"
import { Array as Arr, Clock, Deferred, type Duration, Effect, Queue, Schema } from "effect"

/** Whether this process is one of them. */
export const isWorker = cluster.isWorker

/** What a worker tells the process that started it. */
const Announcement = Schema.Struct({ adminPort: Schema.Int })
const decodeAnnouncement = Schema.decodeUnknownOption(Announcement)

/** Says, as a worker, where its pages for operators are. */
export const announce = (adminPort: number) =>
  Effect.sync(() => {
    process.send?.({ adminPort } satisfies typeof Announcement.Type)
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
/** How long a renewal waits for one successor before it goes on. */
const renewalPatience = "1 minute"

/** The place of one worker and its successors. `up` has the process that listened last. */
interface Place {
  readonly number: number
  readonly up: Queue.Queue<number>
  running: Running | null
}

interface Running {
  readonly worker: Worker
  readonly ended: Deferred.Deferred<string | null>
}

/** Runs them until it is interrupted; then all stop at once. SIGUSR2 replaces them one after the other. */
export const run = Effect.fn("Workers.run")(function* (options: WorkersOptions) {
  const numbers = Arr.range(1, options.count)
  const places = yield* Effect.forEach(numbers, (number) =>
    Effect.map(Queue.sliding<number>(1), (up): Place => ({ number, up, running: null }))
  )
  const anyUp = yield* Deferred.make<void>()
  const renewals = yield* renewalSignals
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(renewals), renew(places))))
  yield* Effect.forEach(places, (place) => occupy(place, anyUp, options), { concurrency: "unbounded", discard: true })
})

/** Keeps a place occupied. */
const occupy = Effect.fnUntraced(function* (place: Place, anyUp: Deferred.Deferred<void>, options: WorkersOptions) {
  let failures = 0
  while (true) {
    const started = yield* Clock.currentTimeMillis
    const why = yield* Effect.scoped(Effect.flatMap(start(place, anyUp, options), ({ ended }) => Deferred.await(ended)))
    if (!(yield* Deferred.isDone(anyUp))) {
      return yield* new WorkerFailed({ message: `A worker ended (${why ?? "of itself"}) before the service was up` })
    }
    const lived = (yield* Clock.currentTimeMillis) - started
    if (why === null) yield* Effect.logInfo(`Worker ${place.number} ended; another one starts`)
    else {
      failures = lived > wellAfterMs ? 1 : failures + 1
      const pauseMs = Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs)
      yield* Effect.logError(`Worker ${place.number} ended (${why}); another one starts in ${pauseMs} ms`)
      yield* Effect.sleep(pauseMs)
    }
  }
})

/** Starts a process; it ends with the scope. */
const start = (place: Place, anyUp: Deferred.Deferred<void>, { adminPorts, patience, port }: WorkersOptions) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const ended = yield* Deferred.make<string | null>()
      const worker = cluster.fork()
      worker.once("exit", (code: number, signal: string | null) => {
        adminPorts.delete(place.number)
        Deferred.doneUnsafe(ended, Effect.succeed(code === 0 ? null : (signal ?? `code ${code}`)))
      })
      worker.on("message", (message: unknown) => {
        const announced = decodeAnnouncement(message)
        if (announced._tag === "Some") adminPorts.set(place.number, announced.value.adminPort)
      })
      worker.on("listening", (address) => {
        if (address.port !== port) return
        Deferred.doneUnsafe(anyUp, Effect.void)
        Queue.offerUnsafe(place.up, worker.process.pid ?? 0)
      })
      const running: Running = { worker, ended }
      place.running = running
      yield* Effect.logInfo(`Worker ${place.number} is process ${worker.process.pid}`)
      return running
    }),
    (running) => stop(running, patience)
  )

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

/** The others serve while one is replaced, so nothing is refused where there are two or more. */
const renew = Effect.fnUntraced(function* (places: ReadonlyArray<Place>) {
  for (const { number, running, up } of places) {
    const former = running?.worker.process
    yield* Effect.logInfo(`Worker ${number} is replaced`)
    former?.kill("SIGTERM")
    const back = yield* Queue.take(up).pipe(
      Effect.repeat({ while: (pid) => pid === former?.pid }),
      Effect.timeoutOption(renewalPatience)
    )
    if (back._tag === "None") yield* Effect.logWarning(`Worker ${number} is not back yet`)
  }
})
