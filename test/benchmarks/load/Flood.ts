/**
 * A client that never reads responses. Each of its connections sends `<head>`, then `<unit>` `<times>` times, and stays open until the
 * process is killed.
 *
 *     node Flood.ts <port> <connections> <times> <unit> <head>
 */
import { connect, createServer } from "node:net"

const [port, connections, times, unit = "", head = ""] = process.argv.slice(2)
const bytes = Buffer.from(head + unit.repeat(Number(times)))

for (let index = 0; index < Number(connections); index += 1) {
  const socket = connect({ port: Number(port), host: "127.0.0.1", noDelay: true })
  socket.pause()
  // A server may close the connection at any time.
  socket.on("error", () => socket.destroy())
  socket.write(bytes)
}

// Paused sockets do not keep the process alive; a listening server does.
createServer().listen(0, "127.0.0.1")
