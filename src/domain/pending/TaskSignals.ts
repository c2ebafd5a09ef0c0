/** Signals within a process: new tasks for the task engine, new chunks and ended items for BatchOpening, and closed tasks for waiting clients. */
import { Context, Deferred, type Duration, Effect, Layer, Queue } from "effect"

const makeSignal = Effect.map(Queue.sliding<void>(1), (queue) => ({
  notify: Effect.asVoid(Queue.offer(queue, undefined)),
  /** Completes after a notification, or after `timeout`. */
  wait: (timeout: Duration.Input) => Effect.asVoid(Effect.timeoutOption(Queue.take(queue), timeout))
}))

const make = Effect.gen(function* () {
  const work = yield* makeSignal
  const opening = yield* makeSignal
  const ended = yield* makeSignal
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  return {
    wake: work.notify,
    awaitWork: work.wait,
    wakeOpening: opening.notify,
    awaitOpening: opening.wait,
    itemEnded: ended.notify,
    awaitItemEnded: ended.wait,
    closed: (taskId: string) =>
      Effect.sync(() => {
        for (const waiter of waiting.get(taskId) ?? []) Deferred.doneUnsafe(waiter, Effect.void)
      }),
    /** Completes when this replica closes the task, or after `timeout`. */
    awaitClosed: (taskId: string, timeout: Duration.Input) =>
      Effect.suspend(() => {
        const closed = Deferred.makeUnsafe<void>()
        const waiters = waiting.get(taskId) ?? new Set()
        waiting.set(taskId, waiters.add(closed))
        const remove = Effect.sync(() => {
          waiters.delete(closed)
          if (waiters.size === 0 && waiting.get(taskId) === waiters) waiting.delete(taskId)
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
