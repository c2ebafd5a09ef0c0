/**
 * A client's connection with two who answer on it: whoever takes plain requests at once, and Node's HTTP server, which would be most of what
 * such a request costs, for all others. Node gets a connection of its own, to and from which the bytes are handed.
 *
 * It has to be certain where a request begins, or a part of one could be taken for another. So requests are read here only as long as
 * all before them were plain ones, one after the other, each answered before the next came. After the first that is not, all is Node's.
 */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import { DateTime } from "effect"
import * as PlainRequest from "#infra/PlainRequest.ts"

/** A response. `content-length` is among its headers. */
export interface PlainResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A request and its response. Of `answer` and `pass` one is called, once, if the exchange is taken. */
export interface Exchange {
  readonly method: string
  readonly url: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** Sends a response. False if nobody is there to receive it. */
  readonly answer: (response: PlainResponse) => boolean
  /** Gives the request to Node's server, and tells `known` which one it is there; null if its client has left before. */
  readonly pass: (known: (request: IncomingMessage | null) => void) => void
}

export interface HttpConnectionOptions {
  /** Is offered each plain request that is read here; true if it takes it. */
  readonly take: (exchange: Exchange) => boolean
  /** Gets the connection of Node's server, once it is needed. */
  readonly giveToNode: (connection: Duplex) => void
  /** Whether each response is to be the last one on its connection. */
  readonly isClosing: () => boolean
  /** A connection is closed on which nothing is asked for this long. Clients are told `keepAliveSeconds`, which is less. */
  readonly idleTimeoutMs: number
  readonly keepAliveSeconds: number
  /** How many requests a connection has when it is Node's for good; then it ends, and the client's next one begins anew. */
  readonly maxRequestsOfNode: number
}

/** Who has the request that is under way, if there is one. */
type Turn = "nobody" | "ours" | "node" | "node for good"

/** What a request is that Node has read: a new one, one that was passed and is not to be offered again, or one behind the last that is answered. */
type Begun = "new" | "passed" | "too late"

export class HttpConnection {
  private readonly socket: Socket
  private readonly options: HttpConnectionOptions
  private turn: Turn = "nobody"
  /** The connection as Node's server has it. */
  private nodeSide: Duplex | null = null
  /** What came while one of ours was under way. */
  private held: Buffer | null = null
  /** Since it is Node's for good. */
  private requestsOfNode = 0
  private clientHasEnded = false
  private nodeIsFull = false
  private passing: ((request: IncomingMessage | null) => void) | null = null

  constructor(socket: Socket, options: HttpConnectionOptions) {
    this.socket = socket
    this.options = options
    socket.setTimeout(options.idleTimeoutMs)
    socket.on("data", (bytes) => this.receive(bytes))
    socket.on("drain", () => this.flow())
    socket.on("end", () => this.end())
    socket.on("timeout", () => this.timeOut())
    // What it means is said by the close that follows.
    socket.on("error", () => undefined)
    socket.on("close", () => this.lose())
  }

  /** Has to be told of each request that Node's server tells of (not of those that expect something first, which it tells otherwise). */
  begun(request: IncomingMessage, response: ServerResponse): Begun {
    const { maxRequestsOfNode } = this.options
    // After it has said "close" a server goes on with no further request (RFC 9112, 9.6).
    if (this.requestsOfNode >= maxRequestsOfNode) return "too late"
    if (this.turn === "node for good") this.requestsOfNode += 1
    if (this.requestsOfNode >= maxRequestsOfNode) response.setHeader("connection", "close")
    const known = this.passing
    this.passing = null
    known?.(request)
    response.once("close", () => {
      if (this.turn === "node") this.turn = "nobody"
    })
    return known === null ? "new" : "passed"
  }

  closeIfIdle() {
    if (this.turn === "nobody") this.socket.destroySoon()
  }

  close() {
    this.socket.destroy()
  }

  private receive(bytes: Buffer) {
    if (this.turn === "ours") {
      // Nothing more is read until it is given on, so there is no second one.
      this.held = bytes
      return this.flow()
    }
    const request = this.turn === "nobody" ? PlainRequest.read(bytes) : null
    if (request !== null) return this.offer(request, bytes)
    this.turn = "node for good"
    return this.give(bytes)
  }

  private offer({ headers, method, url }: PlainRequest.PlainRequest, bytes: Buffer) {
    this.turn = "ours"
    const isTaken = this.options.take({
      method,
      url,
      headers,
      answer: (response) => this.answer(response),
      pass: (known) => {
        if (this.socket.destroyed) return known(null)
        this.passing = known
        return this.handOver(bytes)
      }
    })
    if (!isTaken) this.handOver(bytes)
  }

  private answer(response: PlainResponse): boolean {
    const { isClosing, keepAliveSeconds } = this.options
    if (!this.socket.writable) return false
    const connection = isClosing() ? "close" : `keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}`
    this.socket.write(responseOf(response, connection))
    if (isClosing()) this.socket.destroySoon()
    else this.goOn()
    return true
  }

  /** One of ours is answered. */
  private goOn() {
    this.turn = "nobody"
    if (this.held !== null) this.giveHeld()
    else if (this.socket.writableNeedDrain) this.flow()
    if (this.clientHasEnded) this.end()
  }

  /** A request that is Node's after all. */
  private handOver(bytes: Buffer) {
    this.turn = "node"
    this.give(bytes)
    if (this.held !== null) this.giveHeld()
    if (this.clientHasEnded) this.end()
  }

  private giveHeld() {
    const bytes = this.held
    this.held = null
    this.turn = "node for good"
    if (bytes !== null) this.give(bytes)
  }

  private give(bytes: Buffer) {
    this.nodeSide ??= this.makeNodeSide()
    this.nodeIsFull = !this.nodeSide.push(bytes)
    this.flow()
  }

  /** Reads on, unless somebody has to catch up first. */
  private flow() {
    if (this.held === null && !this.nodeIsFull && !this.socket.writableNeedDrain) this.socket.resume()
    else this.socket.pause()
  }

  /** The client sends nothing more. One of ours is still answered. */
  private end() {
    this.clientHasEnded = true
    if (this.turn === "ours") return
    if (this.nodeSide === null) this.socket.end()
    else this.nodeSide.push(null)
  }

  private timeOut() {
    // After the last answer nothing is waited for but that it is read.
    if (!this.socket.writable) this.socket.destroy()
    else if (this.turn === "ours") return
    else if (this.nodeSide === null) this.socket.destroy()
    else this.nodeSide.emit("timeout")
  }

  private lose() {
    this.nodeSide?.destroy()
    this.passing?.(null)
    this.passing = null
  }

  private makeNodeSide(): Duplex {
    const { options, socket } = this
    const nodeSide = new Duplex({
      read: () => {
        this.nodeIsFull = false
        this.flow()
      },
      write: (bytes, _, done) => void socket.write(bytes, done),
      writev: (pieces, done) => {
        socket.cork()
        for (const [index, { chunk }] of pieces.entries()) socket.write(chunk, index === pieces.length - 1 ? done : undefined)
        socket.uncork()
      },
      final: (done) => void socket.end(done),
      destroy: (_, done) => {
        this.nodeSide = null
        // It may be idle for Node while one of ours is under way.
        if (this.turn !== "ours") socket.destroy()
        // Without the error: Node leaves a connection without a listener for it when it gives it away (CONNECT).
        done(null)
      }
    })
    Object.assign(nodeSide, {
      remoteAddress: socket.remoteAddress,
      setTimeout: (ms: number, then?: () => void) => void socket.setTimeout(ms, then),
      destroySoon: () => void nodeSide.end(() => socket.destroySoon())
    })
    // From now on Node says how long it may be idle.
    socket.setTimeout(0)
    options.giveToNode(nodeSide)
    return nodeSide
  }
}

const responseOf = ({ body, headers, status }: PlainResponse, connection: string) => {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  return `${head}Date: ${dateNow()}\r\nConnection: ${connection}\r\n\r\n${body}`
}

let dateAtS = 0
let date = ""

/** The time as headers have it, made once a second. */
const dateNow = () => {
  const now = DateTime.nowUnsafe()
  const seconds = Math.floor(DateTime.toEpochMillis(now) / 1_000)
  if (seconds !== dateAtS) date = DateTime.toDateUtc(now).toUTCString()
  dateAtS = seconds
  return date
}
