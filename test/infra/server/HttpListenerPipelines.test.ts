import { Layer } from "effect"
import { get, has, listen, post, said, served } from "#test/support/ListeningServer.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(Layer.empty, { excludeTestServices: true })("a pipeline of requests", (it) => {
  it.effect("gets its responses in the order of its requests", function* () {
    const { connect, letGo } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow") + get("/quick") + post("/upload", "body"))
    yield* client.send(get("/last"))
    yield* served(yield* connect)
    yield* letGo
    yield* client.until(has(said("GET", "/slow"), said("GET", "/quick"), said("POST", "/upload", "body"), said("GET", "/last")))
  })

  it.effect("has one request in flight at a time, and does not delay other connections", function* () {
    const { connect, letGo, started, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow") + get("/second") + get("/third"))
    yield* untilStarted(1)
    yield* served(yield* connect)
    assert.deepStrictEqual(started, ["/slow", "/quick"])
    yield* letGo
    yield* client.until(has(said("GET", "/third")))
    assert.deepStrictEqual(started, ["/slow", "/quick", "/second", "/third"])
  })

  it.effect("is answered in full even if the client reads only after it has sent all 2,000 requests", function* () {
    const { connect, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.pause
    const urls = Array.from({ length: 2_000 }, (_, index) => `/${index}`)
    yield* client.send(urls.map((url) => get(url)).join(""))
    yield* served(yield* connect)
    yield* untilStarted(urls.length / 2)
    yield* client.resume
    const text = yield* client.until(has(said("GET", "/1999")))
    assert.deepStrictEqual(
      Array.from(text.matchAll(/<GET (\S+) >/gu), ([, url]) => url),
      urls
    )
    assert.notMatch(text, /connection: close/iu)
  })

  it.effect(
    "is not read further while an earlier request has no response yet, and is read further after that response",
    function* () {
      const { connect, letGo, untilStarted } = yield* listen
      const client = yield* connect
      const body = "x".repeat(20_000_000)
      yield* client.send(get("/slow") + get("/quick") + post("/unread", body))
      yield* untilStarted(1)
      for (const _ of [1, 2, 3]) yield* served(yield* connect)
      assert.isAbove(yield* client.unsent, body.length / 4)
      yield* letGo
      yield* client.until(has(said("GET", "/slow"), said("GET", "/quick"), said("POST", "/unread")))
    }
  )

  it.effect("delivers the body of a waiting request when that request is served", function* () {
    const { connect, letGo, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow") + post("/upload", "first half, second half").slice(0, -11))
    yield* untilStarted(1)
    yield* served(yield* connect)
    yield* letGo
    yield* client.until(has(said("GET", "/slow")))
    yield* client.send("second half")
    yield* client.until(has(said("POST", "/upload", "first half, second half")))
  })

  it.effect("is answered in full although the client has sent FIN", function* () {
    const { connect, letGo, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow") + get("/quick") + post("/upload", "body"))
    yield* client.end
    yield* untilStarted(1)
    yield* served(yield* connect)
    yield* letGo
    assert.isTrue(has(said("GET", "/slow"), said("GET", "/quick"), said("POST", "/upload", "body"))(yield* client.closed))
  })

  it.effect("ends after the response to a request that asks to close the connection", function* () {
    const { connect, started } = yield* listen
    const client = yield* connect
    yield* client.send(get("/quick") + get("/last", "Connection: close") + get("/later"))
    const text = yield* client.closed
    assert.isTrue(has(said("GET", "/quick"), said("GET", "/last"))(text))
    assert.deepStrictEqual(started, ["/quick", "/last"])
  })

  it.effect("starts no further request after its client has disconnected", function* () {
    const { connect, letGo, started, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/huge") + get("/second") + get("/third"))
    yield* client.until((text) => text.length > 1_000)
    yield* client.leave
    yield* letGo
    for (const _ of [1, 2, 3]) yield* served(yield* connect)
    yield* untilStarted(4)
    assert.deepStrictEqual(started, ["/huge", "/quick", "/quick", "/quick"])
  })
})
