import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { createServer as createHttpServer, type ServerResponse } from "node:http"
import { createServer, type Socket } from "node:net"
import { type Exchange, HttpConnection } from "#infra/HttpConnection.ts"
import { get, post } from "#test/support/ListeningServer.ts"
import * as RawHttp from "#test/support/RawHttp.ts"

/** More bytes than the system keeps of what somebody does not read. */
const longer = 40_000_000

/** Connections that may be idle for three tenths of a second, in front of a server that answers when it is told to, or at once. */
const listen = Effect.gen(function* () {
  const unanswered: Array<ServerResponse> = []
  const kept: Array<Exchange> = []
  const read: Array<string | undefined> = []
  const sockets: Array<Socket> = []
  let isClosing = false
  const connections = new WeakMap<object, HttpConnection>()
  const nodes = createHttpServer({ keepAliveTimeout: 50 }, (request, response) => {
    if (connections.get(request.socket)?.begun(request, response) === "too late") return
    read.push(request.url)
    if (request.url === "/at-once") response.end("at once")
    else unanswered.push(response)
  })
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    const options = {
      take: (exchange: Exchange) => exchange.url === "/kept" && kept.push(exchange) > 0,
      isClosing: () => isClosing,
      idleTimeoutMs: 300,
      keepAliveSeconds: 0,
      maxRequestsOfNode: 3,
      giveToNode: (own: object) => {
        connections.set(own, connection)
        nodes.emit("connection", own)
      }
    }
    const connection: HttpConnection = new HttpConnection(socket, options)
  })
  const port = yield* Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return {
    connect: RawHttp.open(port),
    kept,
    read,
    answer: Effect.sync(() => unanswered.map((response) => response.end("answered"))),
    /** Lets what stands for the router read the bodies that came. */
    readBodies: Effect.sync(() => unanswered.map(({ req }) => req.resume())),
    beginClosing: Effect.sync(() => (isClosing = true)),
    /** Waits for what the server sees of the first client to be as wanted. */
    first: (isIt: (socket: Socket) => boolean) =>
      Effect.sync(() => sockets[0]).pipe(
        Effect.repeat({ until: (socket) => socket !== undefined && isIt(socket), schedule: Schedule.spaced("2 millis") }),
        Effect.timeout("10 seconds")
      )
  }
})

layer(Layer.empty, { excludeTestServices: true })("a connection", (it) => {
  it.effect("is closed when nothing is asked on it for some time, unless a request is under way", () =>
    Effect.gen(function* () {
      const { answer, connect, kept } = yield* listen
      const [asking, waiting] = [yield* connect, yield* connect]
      yield* asking.send(get("/"))
      yield* waiting.send(get("/kept"))
      // By the time that these two are closed, one after the other, it has taken longer than a connection may be idle.
      for (const _ of [1, 2]) yield* (yield* connect).closed
      kept[0]?.answer({ status: 200, headers: { "content-length": "4" }, body: "kept" })
      assert.include(yield* waiting.closed, "kept")
      yield* answer
      assert.include(yield* asking.until((text) => text.includes("answered")), "200 OK")
      assert.include(yield* asking.closed, "answered")
    })
  )

  it.effect("that is Node's for good ends some time, so that the next one need not be", () =>
    Effect.gen(function* () {
      const { connect, read } = yield* listen
      const client = yield* connect
      yield* client.send(get("/at-once") + get("/at-once"))
      const text = yield* client.until((all) => all.split("at once").length === 3)
      assert.notMatch(text, /connection: close/iu)
      yield* client.send(get("/at-once") + get("/at-once"))
      assert.match(yield* client.closed, /(?:at once[^]*){2}connection: close[^]*at once$/iu)
      assert.lengthOf(read, 3, "what comes behind the last one is not begun")
    })
  )

  it.effect("that is not Node's for good stays open for more", () =>
    Effect.gen(function* () {
      const { connect } = yield* listen
      const client = yield* connect
      for (const count of [1, 2, 3, 4]) {
        yield* client.send(get("/at-once"))
        const text = yield* client.until((all) => all.split("at once").length === count + 1)
        assert.notMatch(text, /connection: close/iu)
      }
    })
  )

  it.effect("whose client says that no more will come ends also when its request is passed on after that", () =>
    Effect.gen(function* () {
      const { connect, kept } = yield* listen
      const client = yield* connect
      yield* client.send(get("/kept"))
      yield* client.end
      const other = yield* connect
      yield* other.send(get("/at-once"))
      yield* other.until((text) => text.endsWith("at once"))
      kept[0]?.pass(() => undefined)
      yield* client.closed
    })
  )

  it.effect("is closed some time if its client does not read the last answer", () =>
    Effect.gen(function* () {
      const { beginClosing, connect, first, kept } = yield* listen
      const client = yield* connect
      yield* client.send(get("/kept"))
      yield* client.pause
      yield* first(() => kept.length > 0)
      yield* beginClosing
      const body = "x".repeat(longer)
      kept[0]?.answer({ status: 200, headers: { "content-length": String(longer) }, body })
      yield* first(({ destroyed }) => destroyed)
    })
  )

  it.effect("is not read as long as Node's server has enough to do with what it has", () =>
    Effect.gen(function* () {
      const { answer, connect, first, readBodies } = yield* listen
      const client = yield* connect
      yield* client.send(post("/", "x".repeat(longer)))
      const socket = yield* first((socket) => socket.isPaused())
      assert.isBelow(socket?.bytesRead ?? longer, longer / 4)
      yield* readBodies
      yield* first(({ bytesRead }) => bytesRead > longer)
      yield* answer
      yield* client.until((text) => text.includes("answered"))
    })
  )
})
