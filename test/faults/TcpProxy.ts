/** A TCP proxy with a changeable target that can reset its connections, like a virtual IP address or a load balancer. */
import { Effect } from "effect"
import { connect, type Socket } from "node:net"
import * as TcpServer from "#test/support/TcpServer.ts"

export interface TcpProxy {
  readonly port: number
  /** Resets all connections, like a host that restarted. */
  readonly reset: Effect.Effect<void>
}

/** Starts a proxy. `choose` returns the port of 127.0.0.1 for a new connection, or null to close the connection. */
export const make = Effect.fnUntraced(function* (choose: () => number | null) {
  const targets = new Set<Socket>()
  const serve = (client: Socket) => {
    client.on("error", () => client.destroy())
    const port = choose()
    if (port === null) return client.destroy()
    const target = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    targets.add(target)
    target.on("close", () => targets.delete(target))
    target.on("error", () => [target.destroy(), client.destroy()])
    client.on("error", () => target.destroy())
    return [client.pipe(target), target.pipe(client)]
  }
  const { port, sockets } = yield* TcpServer.make(serve, { allowHalfOpen: true })
  yield* Effect.addFinalizer(() => Effect.sync(() => targets.forEach((target) => target.destroy())))
  const proxy: TcpProxy = {
    port,
    reset: Effect.sync(() => {
      for (const socket of [...sockets, ...targets]) socket.resetAndDestroy()
    })
  }
  return proxy
})
