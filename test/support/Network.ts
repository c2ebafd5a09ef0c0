/** The network path to the database, which a test can cut and block. */
import { Effect } from "effect"
import { createServer, connect, type AddressInfo, type Socket } from "node:net"

/**
 * A TCP relay to the database server. `cut` closes all connections and refuses new ones, like a server that is down. `reset` closes all
 * connections and resets each new one; `attempts` counts the reset ones. `block` forwards no data, like a network that lost its route.
 * `restore` ends `cut`, `reset` and `block`.
 */
export const make = Effect.fnUntraced(function* (databaseUrl: string) {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let blocked = false
  let resets = false
  let attempts = 0

  const hold = (socket: Socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    socket.on("error", () => socket.destroy())
    if (blocked) socket.pause()
  }

  const relay = (client: Socket) => {
    if (resets) {
      attempts += 1
      client.resetAndDestroy()
      return
    }
    const server = connect({ host: target.hostname, port: Number(target.port) })
    hold(client)
    hold(server)
    client.on("close", () => server.destroy())
    server.on("close", () => client.destroy())
    client.on("data", (chunk) => server.write(chunk))
    server.on("data", (chunk) => client.write(chunk))
    if (!blocked) return
    client.pause()
    server.pause()
  }

  const server = createServer(relay)
  const listen = (port: number) =>
    Effect.callback<number>((resume) => {
      server.listen(port, "127.0.0.1", () => {
        const address: AddressInfo | string | null = server.address()
        resume(Effect.succeed(address === null || typeof address === "string" ? 0 : address.port))
      })
    })
  const port = yield* listen(0)
  const drop = Effect.sync(() => {
    for (const socket of sockets) socket.destroy()
  })
  const close = Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const socket of sockets) socket.destroy()
  })
  yield* Effect.addFinalizer(() => (server.listening ? close : drop))

  const url = new URL(target)
  url.hostname = "127.0.0.1"
  url.port = String(port)
  return {
    url: url.href,
    cut: close,
    reset: Effect.sync(() => {
      resets = true
      for (const socket of sockets) socket.destroy()
    }),
    attempts: Effect.sync(() => attempts),
    block: Effect.sync(() => {
      blocked = true
      for (const socket of sockets) socket.pause()
    }),
    restore: Effect.suspend(() => {
      blocked = false
      resets = false
      for (const socket of sockets) socket.resume()
      return server.listening ? Effect.void : Effect.asVoid(listen(port))
    })
  }
})
