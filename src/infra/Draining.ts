/**
 * How a replica leaves without failing a request: it says so first (/readyz), answers for a while with `Connection: close`, and only
 * then stops listening. By then its load balancer has sent the traffic elsewhere, and no client sends into a connection that closes.
 */
import { Context, Deferred, Duration, Effect, Layer } from "effect"

/** `begun` is done as soon as the process has been told to stop. */
export class Draining extends Context.Service<Draining, { readonly begun: Deferred.Deferred<void> }>()(
  "vatproof/infra/Draining"
) {}

export const layer = Layer.effect(
  Draining,
  Effect.map(Deferred.make<void>(), (begun) => Draining.of({ begun }))
)

/** Belongs above what listens, so that it is the first to stop. `delay` has to be longer than the load balancer takes to notice. */
export const layerBeforeStop = (delay: Duration.Duration) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { begun } = yield* Draining
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          const on = Duration.isZero(delay) ? "" : `, and listening for another ${Duration.format(delay)}`
          yield* Effect.logInfo(`Stopping: no longer ready${on}`)
          yield* Deferred.succeed(begun, undefined)
          yield* Effect.sleep(delay)
        })
      )
    })
  )
