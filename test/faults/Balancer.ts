/** A minimal load balancer. Polls /readyz of each replica and distributes new connections over the ready ones. */
import { Effect, MutableRef, Schedule } from "effect"
import { HttpClient } from "effect/http"
import * as TcpProxy from "#test/faults/TcpProxy.ts"

/** The ports of a replica. */
export interface Target {
  readonly port: number
  readonly adminPort: number
}

export interface Balancer {
  readonly baseUrl: string
  /** Waits until at least `count` replicas are ready. */
  readonly ready: (count: number) => Effect.Effect<void>
}

const pollInterval = "250 millis"
const pollTimeout = "1 second"

/** Starts a load balancer, which stops with the scope. */
export const make = Effect.fnUntraced(function* (targets: ReadonlyArray<Target>) {
  const http = yield* HttpClient.HttpClient
  const ready = MutableRef.make<ReadonlyArray<Target>>([])
  let connections = 0

  const isReady = ({ adminPort }: Target) =>
    http.get(`http://127.0.0.1:${adminPort}/readyz`).pipe(
      Effect.map(({ status }) => status === 200),
      Effect.timeout(pollTimeout),
      Effect.catchTag(["HttpClientError", "TimeoutError"], () => Effect.succeed(false))
    )
  const poll = Effect.map(Effect.filter(targets, isReady, { concurrency: "unbounded" }), (next) => MutableRef.set(ready, next))
  yield* Effect.forkScoped(Effect.repeat(poll, Schedule.spaced(pollInterval)))

  const proxy = yield* TcpProxy.make(() => {
    connections += 1
    return ready.current[connections % ready.current.length]?.port ?? null
  })
  const balancer: Balancer = {
    baseUrl: `http://127.0.0.1:${proxy.port}`,
    ready: (count) =>
      Effect.sync(() => ready.current.length >= count).pipe(
        Effect.repeat({ schedule: Schedule.spaced("50 millis"), until: (enough) => enough }),
        Effect.asVoid
      )
  }
  return balancer
})
