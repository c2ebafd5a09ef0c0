/** A TCP proxy that loses the first response to each request: it resets the connection instead, or within the response. */
import { Effect, MutableRef } from "effect"
import { connect, type Socket } from "node:net"
import * as TcpServer from "#test/support/TcpServer.ts"

/** Returns the name of a request: its Idempotency-Key, else its method and path. Null for a chunk that begins no request. */
const nameOf = (chunk: Buffer) => {
  const text = chunk.toString("latin1")
  const [line] = /^(?:GET|POST|DELETE) \S+/u.exec(text) ?? [null]
  return line === null ? null : (/^idempotency-key: (\S+)/imu.exec(text)?.[1] ?? line)
}

/** Starts the proxy of a service on 127.0.0.1. `lost` counts the lost responses. */
export const make = (port: number) => {
  const seen = new Set<string>()
  const lost = MutableRef.make(0)
  const serve = (client: Socket) => {
    const target = connect({ port, host: "127.0.0.1" })
    let name = ""
    client.on("data", (chunk) => {
      name = nameOf(chunk) ?? name
      target.write(chunk)
    })
    target.on("data", (chunk) => {
      if (seen.has(name)) return client.write(chunk)
      seen.add(name)
      const half = MutableRef.incrementAndGet(lost) % 2 === 0 ? chunk.subarray(0, chunk.length / 2) : ""
      target.destroy()
      return client.write(half, () => client.resetAndDestroy())
    })
    for (const [socket, other] of [
      [client, target],
      [target, client]
    ] as const) {
      socket.on("error", () => other.destroy())
      socket.on("close", () => socket === client && other.destroy())
      socket.on("end", () => other.end())
    }
  }
  return Effect.map(TcpServer.make(serve), (server) => ({ baseUrl: `http://127.0.0.1:${server.port}`, lost }))
}
