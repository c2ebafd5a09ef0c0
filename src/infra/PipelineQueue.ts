/**
 * Serves the requests of a connection one at a time. Node's HTTP server parses up to 64 kB of a pipeline at once and would start all of its
 * requests together. It gives a response its socket when all responses before it have finished; until then the request waits here, and the
 * connection is not read.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

export interface PipelineQueueOptions {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Runs a task in the next turn of the event loop. */
  readonly schedule: (task: () => void) => void
  /** Limit of waiting requests of all connections together. */
  readonly capacity: number
  /** Learns that a connection was closed because its request exceeded the capacity. */
  readonly onRejected: () => void
}

export class PipelineQueue {
  private readonly options: PipelineQueueOptions
  private readonly waitingOf = new Map<Socket, number>()
  private waiting = 0

  constructor(options: PipelineQueueOptions) {
    this.options = options
  }

  /** Handles the request at once if no other request of its connection is in flight. */
  accept(request: IncomingMessage, response: ServerResponse) {
    if (response.socket === null) this.enqueue(request, response)
    else this.options.handle(request, response)
  }

  private enqueue(request: IncomingMessage, response: ServerResponse) {
    const { capacity, handle, onRejected, schedule } = this.options
    const { socket } = request
    // Node delivers the rest of what it has parsed even after the connection was closed.
    if (socket.destroyed) return
    if (this.waiting >= capacity) {
      socket.destroy()
      return onRejected()
    }
    this.add(socket)
    // A pipeline that is answered from memory would otherwise run to its end within one turn of the event loop.
    const onSocket = () =>
      schedule(() => {
        if (response.destroyed) return
        response.off("close", onClose)
        this.remove(socket)
        handle(request, response)
      })
    const onClose = () => this.remove(socket)
    response.once("socket", onSocket)
    response.once("close", onClose)
  }

  private add(socket: Socket) {
    const before = this.waitingOf.get(socket) ?? 0
    this.waitingOf.set(socket, before + 1)
    this.waiting += 1
    if (before > 0) return
    socket.on("resume", pause)
    socket.pause()
  }

  private remove(socket: Socket) {
    const left = (this.waitingOf.get(socket) ?? 0) - 1
    this.waiting -= 1
    if (left > 0) return void this.waitingOf.set(socket, left)
    this.waitingOf.delete(socket)
    socket.off("resume", pause)
    if (!socket.destroyed) socket.resume()
  }
}

/** Node resumes a connection at the end of each request. */
function pause(this: Socket) {
  this.pause()
}
