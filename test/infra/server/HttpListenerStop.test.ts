import { Effect, Fiber, Layer } from "effect"
import { get, has, listen, said, served } from "#test/support/ListeningServer.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(Layer.empty, { excludeTestServices: true })("a server that is stopping", (it) => {
  it.effect("closes each connection after its next response, also if the request is already in flight", function* () {
    const { connect, drain, letGo, untilStarted } = yield* listen
    const [idle, waiting] = [yield* connect, yield* connect]
    yield* served(idle)
    yield* waiting.send(get("/slow"))
    yield* untilStarted(2)
    yield* drain
    yield* idle.send(get("/last"))
    assert.match(yield* idle.closed, /connection: close[^]*\/last/iu)
    yield* letGo
    assert.match(yield* waiting.closed, /connection: close[^]*\/slow/iu)
  })

  it.effect("does not start the waiting requests of a pipeline", function* () {
    const { connect, drain, letGo, started, untilStarted } = yield* listen
    const client = yield* connect
    yield* client.send(get("/slow") + get("/second"))
    yield* untilStarted(1)
    yield* drain
    yield* letGo
    assert.isTrue(has("onnection: close", said("GET", "/slow"))(yield* client.closed))
    assert.deepStrictEqual(started, ["/slow"])
  })

  it.effect("answers the requests in flight and closes idle connections", function* () {
    const { connect, letGo, stop, untilStarted } = yield* listen
    const [client, idle] = [yield* connect, yield* connect]
    yield* served(idle)
    yield* client.send(get("/slow"))
    yield* untilStarted(2)
    yield* Effect.forkScoped(stop)
    yield* idle.closed
    yield* letGo
    assert.match(yield* client.closed, /connection: close[^]*\/slow/iu)
  })

  it.effect(
    "answers a request that arrives on an idle connection after it has stopped listening, and closes the connection",
    function* () {
      const { connect, refused, stop } = yield* listen
      const [idle, unused] = [yield* connect, yield* connect]
      yield* served(idle)
      const stopping = yield* Effect.forkScoped(stop)
      yield* refused
      for (const client of [idle, unused]) {
        yield* client.send(get("/last"))
        assert.match(yield* client.closed, /connection: close[^]*\/last/iu)
      }
      yield* Fiber.join(stopping)
    }
  )

  it.effect("does not wait for connections without a request in flight", function* () {
    const { connect, stop } = yield* listen
    const [used, unused] = [yield* connect, yield* connect]
    yield* served(used)
    yield* Effect.timeout(stop, "1 second")
    for (const client of [used, unused]) yield* client.closed
  })
})
