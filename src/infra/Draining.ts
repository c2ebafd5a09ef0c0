/**
 * Graceful stop of a replica. It reports that it is no longer ready (/readyz), responds with `Connection: close` for a delay, and then stops
 * listening. During the delay its load balancer moves the traffic to other replicas, so no client sends to a closed connection.
 */
import { Context, Deferred, Duration, Effect, Layer } from "effect"

/** `begun` completes when the process is told to stop. */
export class Draining extends Context.Service<Draining, { readonly begun: Deferred.Deferred<void> }>()(
  "vatproof/infra/Draining"
) {}

export const layer = Layer.effect(
  Draining,
  Effect.map(Deferred.make<void>(), (begun) => Draining.of({ begun }))
)

/** Goes above the listener in the layer graph, so that it stops first. `delay` must exceed the load balancer's check interval. */
export const layerBeforeStop = (delay: Duration.Duration) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { begun } = yield* Draining
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          const listening = Duration.isZero(delay) ? "" : `; listening for another ${Duration.format(delay)}`
          yield* Effect.logInfo(`Stopping: no longer ready${listening}`)
          yield* Deferred.succeed(begun, undefined)
          yield* Effect.sleep(delay)
        })
      )
    })
  )
