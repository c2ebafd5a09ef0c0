import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { answer, get, has, hugeBody, listen, listenWith, longBody, post, said, served } from "#test/support/ListeningServer.ts"

layer(Layer.empty, { excludeTestServices: true })("plain requests", (it) => {
  it.effect("are answered on one connection, one after the other, without Node's server", () =>
    Effect.gen(function* () {
      const { connect, offered } = yield* listen
      const client = yield* connect
      for (const count of [1, 2, 3]) {
        yield* client.send(get("/quick"))
        yield* client.until((text) => text.split(said("GET", "/quick")).length === count + 1)
      }
      assert.deepStrictEqual(offered, ["/quick", "/quick", "/quick"])
    })
  )

  it.effect("have the headers that Node's server gives its responses", () =>
    Effect.gen(function* () {
      const { connect } = yield* listen
      const headersOf = Effect.fnUntraced(function* (...headers: ReadonlyArray<string>) {
        const client = yield* connect
        yield* client.send(get("/quick", ...headers))
        const text = yield* client.until(has(said("GET", "/quick")))
        return text.replace(/Date: .* GMT/u, "Date: now")
      })
      // An expectation is no plain request.
      assert.strictEqual(yield* headersOf(), yield* headersOf("Expect: nothing"))
    }).pipe(Effect.scoped)
  )

  it.effect("that are not taken are the router's, and those after them are offered again", () =>
    Effect.gen(function* () {
      const { connect, offered } = yield* listen
      const client = yield* connect
      yield* client.send(get("/other"))
      yield* client.until(has(said("GET", "/other")))
      yield* client.send(get("/quick"))
      yield* client.until(has(said("GET", "/other"), said("GET", "/quick")))
      yield* client.send(get("/another"))
      yield* client.until(has(said("GET", "/quick"), said("GET", "/another")))
      // Each twice that was not taken: before Node read it, and when it had.
      assert.deepStrictEqual(offered, ["/other", "/other", "/quick", "/another", "/another"])
    })
  )

  it.effect("that are passed reach the router once, known by its own request", () =>
    Effect.gen(function* () {
      const { connect, later, offered } = yield* listen
      const client = yield* connect
      yield* client.send(get("/later"))
      const known: Array<string | undefined> = []
      ;(yield* later(1))[0]?.pass((request) => known.push(request?.url))
      yield* client.until(has(said("GET", "/later")))
      assert.deepStrictEqual(known, ["/later"])
      assert.deepStrictEqual(offered, ["/later"])
      yield* client.send(get("/quick"))
      yield* client.until(has(said("GET", "/later"), said("GET", "/quick")))
    })
  )

  it.effect("keep their order with what comes before they are answered", () =>
    Effect.gen(function* () {
      const { connect, later, offered } = yield* listen
      const client = yield* connect
      yield* client.send(get("/later"))
      const [first] = yield* later(1)
      yield* client.send(get("/quick"))
      yield* client.send(post("/more", "body"))
      yield* served(yield* connect)
      assert.deepStrictEqual(offered, ["/later", "/quick"])
      if (first !== undefined) answer(first)
      yield* client.until(has(said("GET", "/later"), said("GET", "/quick"), said("POST", "/more", "body")))
    })
  )

  it.effect("keep their order also where they are passed", () =>
    Effect.gen(function* () {
      const { connect, later } = yield* listen
      const client = yield* connect
      yield* client.send(get("/later"))
      const [first] = yield* later(1)
      yield* client.send(get("/quick"))
      yield* served(yield* connect)
      first?.pass(() => undefined)
      yield* client.until(has(said("GET", "/later"), said("GET", "/quick")))
    })
  )

  it.effect("keep their order with what the router has still to answer", () =>
    Effect.gen(function* () {
      const { connect, letGo } = yield* listen
      const client = yield* connect
      yield* client.send(get("/slow"))
      yield* served(yield* connect)
      yield* client.send(get("/quick"))
      yield* served(yield* connect)
      yield* letGo
      yield* client.until(has(said("GET", "/slow"), said("GET", "/quick")))
    })
  )

  it.effect("are not found in the body of another request", () =>
    Effect.gen(function* () {
      const { connect } = yield* listen
      const client = yield* connect
      const body = get("/quick")
      yield* client.send(get("/quick"))
      yield* client.until(has(said("GET", "/quick")))
      yield* client.send(post("/upload", body).slice(0, -body.length))
      yield* served(yield* connect)
      yield* client.send(body)
      const text = yield* client.until(has(said("POST", "/upload", body)))
      assert.lengthOf(text.split("HTTP/1.1 200 OK"), 3)
    })
  )

  it.effect("are answered although their client will send no more", () =>
    Effect.gen(function* () {
      const { connect, later } = yield* listen
      const client = yield* connect
      yield* client.send(get("/later"))
      const [first] = yield* later(1)
      yield* client.end
      yield* served(yield* connect)
      if (first !== undefined) answer(first)
      assert.include(yield* client.closed, said("GET", "/later"))
    })
  )

  it.effect("whose client has left are not answered, and not passed", () =>
    Effect.gen(function* () {
      const { connect, later } = yield* listen
      const [client, other] = [yield* connect, yield* connect]
      yield* client.send(get("/later"))
      yield* later(1)
      yield* other.send(get("/later"))
      const [first, second] = yield* later(2)
      yield* client.leave
      yield* other.leave
      yield* served(yield* connect)
      assert.isFalse(first !== undefined && answer(first))
      const passed = yield* Effect.callback<object | null>((resume) => second?.pass((request) => resume(Effect.succeed(request))))
      assert.isNull(passed)
    })
  )

  it.effect("wait for a client who does not read", () =>
    Effect.gen(function* () {
      const { connect, offered } = yield* listen
      const client = yield* connect
      yield* client.pause
      const rounds = 80
      for (let sent = 0; sent < rounds; sent += 1) {
        yield* client.send(get("/long"))
        yield* served(yield* connect)
      }
      assert.isBelow(offered.filter((url) => url === "/long").length, rounds / 4)
      yield* client.resume
      yield* client.until((text) => text.length > rounds * longBody.length)
    }).pipe(Effect.scoped)
  )

  it.effect("are given up with their connection when nothing of the response is read, or nothing of it comes", () =>
    Effect.gen(function* () {
      const { connect, letGo } = yield* listenWith({ stalled: Duration.millis(300) })
      const reader = yield* connect
      yield* reader.send(get("/huge"))
      yield* reader.until((text) => text.length > 1_000)
      yield* reader.pause
      // Node looks twice whether anything was read. Each of these stands still for as long as Node waits until it looks.
      for (const _ of [1, 2, 3]) {
        const waiter = yield* connect
        yield* waiter.send(get("/slow"))
        yield* waiter.closed
      }
      yield* reader.resume
      yield* reader.closed
      yield* reader.until((text) => text.length < hugeBody.length)
      yield* letGo
    }).pipe(Effect.scoped)
  )

  it.effect("are the last ones on their connection when the service is about to stop", () =>
    Effect.gen(function* () {
      const { connect, drain, later } = yield* listen
      const client = yield* connect
      yield* client.send(get("/later"))
      const [first] = yield* later(1)
      yield* drain
      const next = yield* connect
      yield* next.send(get("/quick"))
      assert.match(yield* next.closed, /connection: close/iu)
      if (first !== undefined) answer(first)
      assert.match(yield* client.closed, /connection: close/iu)
    })
  )

  it.effect("are answered by a service that stops, although Node's server has no more to do for them", () =>
    Effect.gen(function* () {
      const { connect, drain, later, stop } = yield* listen
      const client = yield* connect
      yield* client.send(get("/other"))
      yield* client.until(has(said("GET", "/other")))
      yield* client.send(get("/later"))
      const [first] = yield* later(1)
      const idle = yield* connect
      yield* served(idle)
      yield* drain
      yield* Effect.forkScoped(stop)
      yield* idle.closed
      if (first !== undefined) answer(first)
      assert.include(yield* client.closed, said("GET", "/later"))
    })
  )

  it.effect("do not keep the service by connections that are idle", () =>
    Effect.gen(function* () {
      const { connect, stop } = yield* listen
      const [used, shared, unused] = [yield* connect, yield* connect, yield* connect]
      for (const url of ["/quick", "/other"]) {
        yield* shared.send(get(url))
        yield* shared.until(has(said("GET", url)))
      }
      yield* used.send(get("/quick"))
      yield* used.until(has(said("GET", "/quick")))
      yield* Effect.timeout(stop, "4 seconds")
      for (const client of [used, shared, unused]) yield* client.closed
    })
  )
})

layer(Layer.empty, { excludeTestServices: true })("a tunnel", (it) => {
  it.effect("is refused, and does no harm when who asked for it has gone", () =>
    Effect.gen(function* () {
      const { connect } = yield* listen
      const tunnel = "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"
      const client = yield* connect
      yield* client.send(tunnel)
      assert.match(yield* client.closed, /^HTTP\/1.1 405 [^]*"request_id":"[0-9a-f]{8}-[0-9a-f]{4}-7/u)
      for (let times = 0; times < 20; times += 1) {
        const gone = yield* connect
        yield* gone.send(tunnel)
        yield* gone.leave
      }
      yield* served(yield* connect)
    }).pipe(Effect.scoped)
  )
})
