import { Effect, Layer, Schedule } from "effect"
import { createServer, type ServerResponse } from "node:http"
import { HttpRequest } from "#infra/server/HttpMessages.ts"
import { PipelineQueue } from "#infra/server/PipelineQueue.ts"
import { get } from "#test/support/ListeningServer.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import { assert, layer } from "#test/support/Test.ts"

/** A queue of up to three waiting requests. The test itself runs the scheduled tasks of the queue and responds to its requests. */
const listen = Effect.gen(function* () {
  const scheduled: Array<() => void> = []
  const inFlight: Array<ServerResponse> = []
  const seen = { rejected: 0, received: 0 }
  const queue = new PipelineQueue({
    handle: (_, response) => void inFlight.push(response),
    schedule: (task) => void scheduled.push(task),
    capacity: 3,
    onRejected: () => void (seen.rejected += 1)
  })
  const server = createServer({ IncomingMessage: HttpRequest }, (request, response) => {
    seen.received += 1
    queue.accept(request, response)
  })
  const port = yield* Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  const until = (isIt: () => boolean) =>
    Effect.sync(isIt).pipe(
      Effect.repeat({ until: (is) => is, schedule: Schedule.spaced("2 millis") }),
      Effect.timeout("10 seconds")
    )
  return {
    connect: RawHttp.open(port),
    until,
    seen,
    scheduled,
    inFlight,
    respond: Effect.sync(() => {
      for (const response of inFlight.splice(0)) response.end(response.req.url)
    })
  }
})

layer(Layer.empty, { excludeTestServices: true })("a queue of pipelined requests", (it) => {
  it.effect("handles the first request at once, and each later request after the response to the previous one", function* () {
    const { connect, inFlight, respond, scheduled, until } = yield* listen
    const client = yield* connect
    yield* client.send(get("/1") + get("/2") + get("/3"))
    for (const url of ["/1", "/2", "/3"]) {
      yield* until(() => inFlight.length === 1)
      assert.strictEqual(inFlight[0]?.req.url, url)
      assert.lengthOf(scheduled, 0)
      yield* respond
      if (url === "/3") break
      yield* until(() => scheduled.length === 1)
      assert.lengthOf(inFlight, 0)
      scheduled.pop()?.()
    }
    yield* client.until((text) => text.endsWith("/3"))
  })

  it.effect(
    "closes a connection whose requests exceed the queue's capacity; served requests and disconnected clients free capacity",
    function* () {
      const { connect, inFlight, respond, scheduled, seen, until } = yield* listen
      const [first, leaving] = [yield* connect, yield* connect]
      yield* first.send(get("/1") + get("/2"))
      yield* leaving.send(get("/1") + get("/2") + get("/3"))
      yield* until(() => seen.received === 5)
      const tooMany = yield* connect
      yield* tooMany.send(get("/1") + get("/2") + get("/3"))
      assert.strictEqual(yield* tooMany.closed, "")
      assert.strictEqual(seen.rejected, 1)
      assert.strictEqual(seen.received, 7, "the request after the rejected one is not parsed")
      yield* leaving.leave
      yield* respond
      yield* until(() => scheduled.length === 1)
      for (const task of scheduled.splice(0)) task()
      yield* respond
      yield* first.until((text) => text.endsWith("/2"))
      const next = yield* connect
      yield* next.send(get("/1") + get("/2") + get("/3") + get("/4"))
      yield* until(() => seen.received === 11)
      assert.lengthOf(inFlight, 1)
      assert.strictEqual(seen.rejected, 1)
    }
  )
})
