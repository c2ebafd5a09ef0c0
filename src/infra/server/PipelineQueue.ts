/**
 * Serves the requests of a connection one at a time. Node's HTTP server parses up to 64 kB of pipelined requests at once and
 * would start all these requests together. Node assigns the socket to a response when all earlier responses on the connection
 * have finished. Until then, this queue holds the request, and Node reads no data from the connection.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"

export interface PipelineQueueOptions {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Runs a task in the next iteration of the event loop. */
  readonly schedule: (task: () => void) => void
  /** Limit of waiting requests of all connections together. */
  readonly capacity: number
  /** Called when a connection was closed because its request exceeded the capacity. */
  readonly onRejected: () => void
}

/** The waiting requests of a connection. */
interface Pipeline {
  count: number
  readonly onClose: () => void
}

export class PipelineQueue {
  private readonly options: PipelineQueueOptions
  private readonly pipelines = new Map<Socket, Pipeline>()
  private waiting = 0

  constructor(options: PipelineQueueOptions) {
    this.options = options
  }

  /** Handles the request at once if no other request of its connection is in flight. Otherwise queues it. */
  accept(request: IncomingMessage, response: ServerResponse) {
    if (response.socket === null) this.enqueue(request, response)
    else this.options.handle(request, response)
  }

  private enqueue(request: IncomingMessage, response: ServerResponse) {
    const { capacity, handle, onRejected, schedule } = this.options
    const { socket } = request
    if (socket.destroyed) return
    if (this.waiting >= capacity) {
      socket.destroy()
      return onRejected()
    }
    this.add(socket)
    // Without `schedule`, pipelined requests that are answered from a cache would all run in one iteration of the event loop, while the
    // other connections wait.
    response.once("socket", () =>
      schedule(() => {
        if (this.remove(socket) && !socket.destroyed) handle(request, response)
      })
    )
  }

  private add(socket: Socket) {
    this.waiting += 1
    const existing = this.pipelines.get(socket)
    if (existing !== undefined) {
      existing.count += 1
      return
    }
    const pipeline = { count: 1, onClose: () => this.end(socket, pipeline) }
    this.pipelines.set(socket, pipeline)
    socket.on("close", pipeline.onClose)
    socket.on("resume", pause)
    socket.pause()
  }

  /** Removes a request from the queue. Returns false if its connection has ended. */
  private remove(socket: Socket): boolean {
    const pipeline = this.pipelines.get(socket)
    if (pipeline === undefined) return false
    this.waiting -= 1
    pipeline.count -= 1
    if (pipeline.count > 0) return true
    this.end(socket, pipeline)
    socket.resume()
    return true
  }

  private end(socket: Socket, { count, onClose }: Pipeline) {
    this.waiting -= count
    this.pipelines.delete(socket)
    socket.off("close", onClose)
    socket.off("resume", pause)
  }
}

/** Pauses a connection again, because Node resumes it at the end of each request. */
function pause(this: Socket) {
  this.pause()
}
