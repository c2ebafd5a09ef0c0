/** A TCP server on 127.0.0.1. The end of its scope stops it and closes its connections. */
import { Effect } from "effect"
import { createServer, type Server, type ServerOpts, type Socket } from "node:net"

const portOf = (server: Server) => {
  const address: ReturnType<Server["address"]> = server.address()
  return address === null || typeof address === "string" ? 0 : address.port
}

/** Starts the server. `sockets` are its open connections. Port 0 means any free port. */
export const make = Effect.fnUntraced(function* (
  serve: (socket: Socket) => void,
  { port = 0, ...options }: ServerOpts & { readonly port?: number } = {}
) {
  const sockets = new Set<Socket>()
  const server = createServer(options, (socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
    serve(socket)
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(port, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )
  return { port: portOf(server), sockets }
})
