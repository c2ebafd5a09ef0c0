/** Signals within the process: new work for the engine and for the opening of batches, and closed tasks for waiting clients. */
import { Context, Deferred, type Duration, Effect, Layer, Queue } from "effect"

const makeBell = Effect.map(Queue.sliding<void>(1), (rung) => ({
  ring: Effect.asVoid(Queue.offer(rung, undefined)),
  /** Completes when there may be work, or after `patience`. */
  heard: (patience: Duration.Input) => Effect.asVoid(Effect.timeoutOption(Queue.take(rung), patience))
}))

const make = Effect.gen(function* () {
  const work = yield* makeBell
  const opening = yield* makeBell
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  return {
    wake: work.ring,
    awaitWork: work.heard,
    wakeOpening: opening.ring,
    awaitOpening: opening.heard,
    closed: (taskId: string) =>
      Effect.sync(() => {
        for (const one of waiting.get(taskId) ?? []) Deferred.doneUnsafe(one, Effect.void)
      }),
    /** Completes when this replica closes the task, or after `patience`. */
    awaitClosed: (taskId: string, patience: Duration.Input) =>
      Effect.suspend(() => {
        const closed = Deferred.makeUnsafe<void>()
        const others = waiting.get(taskId) ?? new Set()
        waiting.set(taskId, others.add(closed))
        const leave = Effect.sync(() => {
          others.delete(closed)
          if (others.size === 0 && waiting.get(taskId) === others) waiting.delete(taskId)
        })
        return Effect.asVoid(Effect.timeoutOption(Deferred.await(closed), patience)).pipe(Effect.ensuring(leave))
      })
  }
})

export class TaskSignals extends Context.Service<TaskSignals, Effect.Success<typeof make>>()(
  "vatproof/domain/pending/TaskSignals"
) {
  static readonly layer = Layer.effect(TaskSignals, make)
}
