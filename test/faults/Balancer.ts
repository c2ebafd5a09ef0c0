/** A minimal load balancer: it polls each replica's /readyz and gives new connections to the ready ones, in turn. */
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
  /** Waits until this many replicas receive connections. */
  readonly ready: (count: number) => Effect.Effect<void>
}

const lookEvery = "250 millis"
const patience = "1 second"

/** Starts it; it ends with the scope. */
export const make = Effect.fnUntraced(function* (targets: ReadonlyArray<Target>) {
  const http = yield* HttpClient.HttpClient
  const ready = MutableRef.make<ReadonlyArray<Target>>([])
  let turn = 0

  const isReady = ({ adminPort }: Target) =>
    http.get(`http://127.0.0.1:${adminPort}/readyz`).pipe(
      Effect.map(({ status }) => status === 200),
      Effect.timeout(patience),
      Effect.catchTag(["HttpClientError", "TimeoutError"], () => Effect.succeed(false))
    )
  const look = Effect.map(Effect.filter(targets, isReady, { concurrency: "unbounded" }), (found) => MutableRef.set(ready, found))
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(lookEvery)))

  const proxy = yield* TcpProxy.make(() => {
    turn += 1
    return ready.current[turn % ready.current.length]?.port ?? null
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
