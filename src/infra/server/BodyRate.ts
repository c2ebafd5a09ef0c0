/** Refuses requests whose bodies arrive too slowly, so that silent clients do not hold connections and the places of uploads. */
import type { Socket } from "node:net"
import { Duration, Effect } from "effect"
import * as Worker from "#domain/concurrency/Worker.ts"
import type { HttpRequest } from "#infra/server/HttpMessages.ts"

/** The least rate of a body: at least `bytes` in each `interval`, unless it is complete. */
export interface LeastRate {
  readonly bytes: number
  readonly interval: Duration.Duration
}
/** 4 KiB per second. A slow mobile connection sends more. */
export const leastRate: LeastRate = { bytes: 20 * 1024, interval: Duration.seconds(5) }

/** Creates a function that watches a request. Calls `refuse` with the connection of a request that is too slow. */
export const make = Effect.fnUntraced(function* ({ bytes, interval }: LeastRate, refuse: (socket: Socket) => void) {
  /**
   * The requests with incomplete bodies, and the bytes that their connections had received at the last check; null if no interval has begun,
   * because the service did not wait for the client.
   */
  const received = new Map<HttpRequest, number | null>()

  const check = Effect.sync(() => {
    for (const [request, before] of received) {
      const { bytesRead } = request.socket
      if (before !== null && request.awaitsBody && bytesRead - before < bytes) refuse(request.socket)
      received.set(request, request.awaitsBody ? bytesRead : null)
    }
  })
  yield* Worker.loop("The check of slow bodies", Effect.delay(check, interval))

  return (request: HttpRequest) => {
    if (request.headers["transfer-encoding"] === undefined && Number(request.headers["content-length"] ?? 0) === 0) return
    received.set(request, null)
    request.once("close", () => received.delete(request))
  }
})
