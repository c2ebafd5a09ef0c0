/**
 * Graceful stop of a replica. It reports that it is no longer ready (/readyz), responds with `Connection: close` for a delay, and then stops
 * listening. During the delay its load balancer moves the traffic to other replicas, so no client sends to a closed connection.
 */
import { Context, Deferred, Duration, Effect, Layer } from "effect"

/**
 * `begun` completes when the process is told to stop. When the successor of a worker listens, `begun` and `replaced` complete:
 * new connections go to the successor, and the worker ends after its last connection.
 */
export class Draining extends Context.Service<
  Draining,
  { readonly begun: Deferred.Deferred<void>; readonly replaced: Deferred.Deferred<void> }
>()("vatproof/infra/server/Draining") {}

export const make = Effect.all({ begun: Deferred.make<void>(), replaced: Deferred.make<void>() })

/** `untilReplaced` completes as soon as the worker that replaces this process accepts connections. */
export const layer = (untilReplaced: Effect.Effect<void>) =>
  Layer.effect(
    Draining,
    Effect.gen(function* () {
      const draining = yield* make
      const begin = Effect.andThen(Deferred.succeed(draining.begun, undefined), Deferred.succeed(draining.replaced, undefined))
      yield* Effect.forkScoped(Effect.andThen(untilReplaced, begin))
      return draining
    })
  )

/**
 * Delays the stop of the listener: this layer stops first, because it is above the listener in the layer graph. `delay` must exceed
 * the check interval of the load balancer.
 */
export const layerBeforeStop = (delay: Duration.Duration) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { begun, replaced } = yield* Draining
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          const rest = (yield* Deferred.isDone(replaced)) ? Duration.zero : delay
          const listening = Duration.isZero(rest) ? "" : `; it listens for another ${Duration.format(rest)}`
          yield* Effect.logInfo(`Stopping: this replica is no longer ready${listening}`)
          yield* Deferred.succeed(begun, undefined)
          yield* Effect.sleep(rest)
        })
      )
    })
  )
