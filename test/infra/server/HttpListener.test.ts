import { Duration, Effect, Layer, Logger } from "effect"
import { get, has, hugeBody, listen, listenWith, post, said, served } from "#test/support/ListeningServer.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(Layer.empty, { excludeTestServices: true })("a connection", (it) => {
  it.effect("serves one request after another and stays open", function* () {
    const { connect } = yield* listen
    const client = yield* connect
    for (const count of [1, 2, 3]) {
      yield* client.send(get("/quick"))
      const text = yield* client.until((all) => all.split(said("GET", "/quick")).length === count + 1)
      assert.notMatch(text, /connection: close/iu)
    }
  })

  it.effect("does not parse the body of a request as another request", function* () {
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

  it.effect("still delivers its response after the client has sent FIN", function* () {
    const { connect, letGo, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow"))
    yield* client.end
    yield* untilStarted(1)
    yield* served(yield* connect)
    yield* letGo
    assert.include(yield* client.closed, said("GET", "/slow"))
  })

  it.effect("is closed after a timeout if the client does not read the response, or the server sends no response", function* () {
    const { connect, letGo } = yield* listenWith({ stalled: Duration.millis(300) })
    const reader = yield* connect
    yield* reader.send(get("/huge"))
    yield* reader.until((text) => text.length > 1_000)
    yield* reader.pause
    // Node closes a stalled connection at its second periodic check. Each `waiter` lasts for one check.
    for (const _ of [1, 2, 3]) {
      const waiter = yield* connect
      yield* waiter.send(get("/slow"))
      yield* waiter.closed
    }
    yield* reader.resume
    yield* reader.closed
    yield* reader.until((text) => text.length < hugeBody.length)
    yield* letGo
  })

  it.effect("is closed at once if the maximum number of connections is open; several such connections cause one warning", () => {
    const lines: Array<unknown> = []
    const keep = Logger.make(({ message }) => void lines.push(message))
    return Effect.gen(function* () {
      const { connect } = yield* listenWith({ maxConnections: 2 })
      const [first, second] = [yield* connect, yield* connect]
      yield* served(first)
      yield* served(second)
      for (const _ of [1, 2, 3]) assert.strictEqual(yield* (yield* connect).closed, "")
      yield* first.leave
      yield* served(second)
      yield* served(yield* connect)
      assert.deepStrictEqual(lines, [["Refused 1 connections: the maximum of 2 open connections is reached"]])
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([keep])))
  })
})

layer(Layer.empty, { excludeTestServices: true })("a connection beyond the limit of its client address", (it) => {
  it.effect("is closed at once, until another connection of the address is closed", function* () {
    const { connect } = yield* listenWith({ maxPerAddress: 2 })
    const [first, second] = [yield* connect, yield* connect]
    yield* served(first)
    yield* served(second)
    for (const _ of [1, 2, 3]) assert.strictEqual(yield* (yield* connect).closed, "")
    yield* first.leave
    yield* served(second)
    yield* served(yield* connect)
  })
})

layer(Layer.empty, { excludeTestServices: true })("a request", (it) => {
  it.effect("has `;`, `#` and invalid UTF-8 escaped in its path and query before the router reads them", function* () {
    const { connect } = yield* listen
    const client = yield* connect
    for (const headers of [[], ["Expect: 100-continue"], ["Expect: nothing"]]) {
      yield* client.send(get("/a;b/%FF?c#d", ...headers))
      yield* client.until(has(said("GET", "/a%3Bb/%EF%BF%BD?c%23d")))
    }
  })

  it.effect("gets 100 Continue when its body is read, if it has Expect: 100-continue", function* () {
    const { connect } = yield* listen
    const client = yield* connect
    yield* client.send(post("/upload", "body", "Expect: 100-continue").slice(0, -4))
    assert.strictEqual(yield* client.until(has("\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n")
    yield* client.send("body")
    yield* client.until(has("HTTP/1.1 200 OK", said("POST", "/upload", "body")))
  })

  it.effect(
    "is refused if its body arrives too slowly, but not if the service has not read the received bytes yet",
    function* () {
      const { connect, letGo } = yield* listenWith({ bodyRate: { bytes: 100, interval: Duration.millis(100) } })
      const [silent, slow, unread] = [yield* connect, yield* connect, yield* connect]
      yield* unread.send(post("/slow", "x".repeat(10)).replace("Content-Length: 10", "Content-Length: 11"))
      yield* silent.send(post("/upload", "").replace("Content-Length: 0", "Content-Length: 1000"))
      yield* slow.send(post("/upload", "x").replace("Content-Length: 1", "Content-Length: 1000"))
      for (const client of [silent, slow]) {
        assert.match(yield* client.closed, /^HTTP\/1.1 408 .*"code":"REQUEST_TIMEOUT"/su)
      }
      yield* unread.send("x")
      yield* letGo
      yield* unread.until((text) => text.includes(said("POST", "/slow", "x".repeat(11))))
    }
  )

  it.effect("gets no 100 Continue if its body is not needed", function* () {
    const { connect } = yield* listen
    const client = yield* connect
    yield* client.send(post("/unread", "body", "Expect: 100-continue").slice(0, -4))
    const text = yield* client.closed
    assert.match(text, /^HTTP\/1.1 200 OK[^]*connection: close/iu)
    assert.notInclude(text, "100 Continue")
  })

  it.effect(
    "is not read further once it is refused, and its client gets the response, also if it writes the whole body first",
    function* () {
      const { bytesRead, connect } = yield* listen
      const body = "x".repeat(2_000_000)
      for (const url of ["/limited", "/unread"]) {
        const [reader, writer] = [yield* connect, yield* connect]
        yield* writer.pause
        for (const client of [reader, writer]) yield* client.send(post(url, body))
        yield* Effect.repeat(Effect.delay(writer.unsent, "2 millis"), { until: (bytes) => bytes === 0 })
        yield* writer.resume
        const status = url === "/limited" ? 413 : 200
        for (const client of [reader, writer]) {
          assert.match(yield* client.closed, new RegExp(`^HTTP/1.1 ${status} [^]*connection: close`, "iu"))
        }
      }
      for (const bytes of yield* bytesRead) assert.isBelow(bytes, 500_000)
    }
  )

  it.effect("is served as HTTP if it asks to upgrade to another protocol, and then its connection is closed", function* () {
    const { connect, started } = yield* listen
    for (const protocol of ["websocket", "h2c"]) {
      const client = yield* connect
      yield* client.send(get(`/${protocol}`, "Connection: upgrade", `Upgrade: ${protocol}`) + get("/second"))
      yield* client.send(get("/third"))
      assert.match(yield* client.closed, /connection: close[^]*<GET [^ ]+ >$/iu)
    }
    assert.deepStrictEqual(started, ["/websocket", "/h2c"])
  })
})

layer(Layer.empty, { excludeTestServices: true })("the refusal of a request", (it) => {
  const tunnel = "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"

  it.effect("does not stop the server if the client has disconnected after a CONNECT request", function* () {
    const { connect } = yield* listen
    const client = yield* connect
    yield* client.send(tunnel)
    assert.match(yield* client.closed, /^HTTP\/1.1 405 [^]*"request_id":"[0-9a-f]{8}-[0-9a-f]{4}-7/u)
    for (let times = 0; times < 20; times += 1) {
      const gone = yield* connect
      yield* gone.send(tunnel)
      yield* gone.leave
    }
    yield* served(yield* connect)
  })

  it.effect.each([
    [400, "nonsense\r\n\r\n"],
    [405, tunnel],
    [431, get("/quick", `A: ${"a".repeat(33_000)}`)]
  ] as const)("with status %d is sent after the responses to earlier requests of the connection", function* ([status, bytes]) {
    const { connect, letGo, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow"))
    yield* client.send(get("/quick") + bytes)
    yield* untilStarted(1)
    // These bytes make Node report the same parse error again.
    yield* client.send("more")
    yield* served(yield* connect)
    yield* letGo
    const text = yield* client.closed
    assert.isTrue(has(said("GET", "/slow"), said("GET", "/quick"), `HTTP/1.1 ${status} `)(text), text)
    assert.lengthOf(text.split("HTTP/1.1 "), 4)
  })

  it.effect("does not wait for the rest of a malformed body", function* () {
    const { connect, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send("POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    yield* untilStarted(1)
    yield* client.send("nonsense\r\n")
    assert.match(yield* client.closed, /^HTTP\/1.1 400 /u)
  })
})
