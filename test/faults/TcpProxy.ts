/** A TCP proxy with a changeable target that can reset its connections, like a virtual IP address or a load balancer. */
import { Deferred, Effect } from "effect"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"

export interface TcpProxy {
  readonly port: number
  /** Waits for the first connection. */
  readonly firstConnection: Effect.Effect<void>
  /** Resets all connections, like a host that restarted. */
  readonly reset: Effect.Effect<void>
}

/** `choose` returns the port of 127.0.0.1 for a new connection, or null to close it. */
export const make = Effect.fnUntraced(function* (choose: () => number | null) {
  const sockets = new Set<Socket>()
  const track = (socket: Socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    socket.on("error", () => socket.destroy())
    return socket
  }
  const connected = yield* Deferred.make<void>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    track(client)
    const port = choose()
    Deferred.doneUnsafe(connected, Effect.void)
    if (port === null) return client.destroy()
    const target = track(connect({ port, host: "127.0.0.1", allowHalfOpen: true }))
    target.on("error", () => client.destroy())
    client.on("error", () => target.destroy())
    return [client.pipe(target), target.pipe(client)]
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )
  const address: AddressInfo | string | null = server.address()
  const proxy: TcpProxy = {
    port: address === null || typeof address === "string" ? 0 : address.port,
    firstConnection: Deferred.await(connected),
    reset: Effect.sync(() => {
      for (const socket of sockets) socket.resetAndDestroy()
    })
  }
  return proxy
})
