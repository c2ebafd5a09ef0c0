/** Signals within a process: new tasks for the task engine, new chunks and ended items for BatchOpening, and closed tasks for waiting clients. */
import { Context, Deferred, type Duration, Effect, Layer, Queue } from "effect"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"

/** Maximum number of clients that wait for validations or updates per replica, and of these per API key. */
const maxWaits = { concurrency: 2_000, capacity: 2_000, perKey: 100 }

const makeSignal = Effect.map(Queue.sliding<void>(1), (queue) => ({
  notify: Effect.asVoid(Queue.offer(queue, undefined)),
  /** Completes after a notification, or after `timeout`. */
  wait: (timeout: Duration.Input) => Effect.asVoid(Effect.timeoutOption(Queue.take(queue), timeout))
}))

const make = Effect.gen(function* () {
  const work = yield* makeSignal
  const opening = yield* makeSignal
  const ended = yield* makeSignal
  const places = yield* FairQueue.make(maxWaits)
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  return {
    wake: work.notify,
    awaitWork: work.wait,
    wakeOpening: opening.notify,
    awaitOpening: opening.wait,
    itemEnded: ended.notify,
    awaitItemEnded: ended.wait,
    /** Wakes the clients that wait for one of these tasks, or for the updates of one of these API keys. */
    closed: (...ids: ReadonlyArray<string>) =>
      Effect.sync(() => {
        for (const id of ids) for (const waiter of waiting.get(id) ?? []) Deferred.doneUnsafe(waiter, Effect.void)
      }),
    /** Runs `wait` of a client. If too many clients wait, runs `onRejected` at once. */
    inPlace: <A, E, B>(keyId: string, wait: Effect.Effect<A, E>, onRejected: Effect.Effect<B>) =>
      places.admit(keyId, wait, () => onRejected),
    /** Completes when this replica closes the task, or a task or batch of the API key, or after `timeout`. */
    awaitClosed: (id: string, timeout: Duration.Input) =>
      Effect.suspend(() => {
        const closed = Deferred.makeUnsafe<void>()
        const waiters = waiting.get(id) ?? new Set()
        waiting.set(id, waiters.add(closed))
        const remove = Effect.sync(() => {
          waiters.delete(closed)
          if (waiters.size === 0 && waiting.get(id) === waiters) waiting.delete(id)
        })
        return Effect.asVoid(Effect.timeoutOption(Deferred.await(closed), timeout)).pipe(Effect.ensuring(remove))
      })
  }
})

export class TaskSignals extends Context.Service<TaskSignals, Effect.Success<typeof make>>()(
  "vatproof/domain/pending/TaskSignals"
) {
  static readonly layer = Layer.effect(TaskSignals, make)
}
