import { connect } from "node:net"
import { Clock, Effect, Fiber, Result, Schema } from "effect"
import { magicNumbers } from "#infra/sandbox/MagicNumbers.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { hugeBytes } from "#infra/sandbox/FaultyResponse.ts"
import { assert, layer } from "#test/support/Test.ts"

/** A response: the first `keptBytes` as text, the number of all bytes, and the error that ended the connection. */
interface Received {
  readonly text: string
  readonly bytes: number
  readonly error: string | null
}

const keptBytes = 4_096

/** Sends bytes unchanged and collects the response until the connection ends. `stopAfter` disconnects after this many bytes. */
const raw = (request: string, stopAfter = Infinity) =>
  Effect.flatMap(Sandbox.Sandbox, ({ port }) =>
    Effect.callback<Received>((resume) => {
      const socket = connect(port, "127.0.0.1", () => socket.write(request))
      let text = ""
      let bytes = 0
      let error: string | null = null
      socket.on("data", (piece) => {
        bytes += piece.length
        if (text.length < keptBytes) text += piece.toString("utf8").slice(0, keptBytes)
        if (bytes >= stopAfter) socket.destroy()
      })
      socket.on("error", (cause: NodeJS.ErrnoException) => {
        error = cause.code ?? cause.message
      })
      socket.on("close", () => resume(Effect.succeed({ text, bytes, error })))
      return Effect.sync(() => socket.destroy())
    })
  )

const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** Returns a request to a source about the German VAT ID with these last digits. */
const ask = (source: "vies" | "bzst", ending: string) => {
  const target = vatIdEnding("DE", ending)
  return source === "vies"
    ? post("/taxation_customs/vies/rest-api/check-vat-number", JSON.stringify({ countryCode: "DE", vatNumber: target.slice(2) }))
    : post("/app/v1/abfrage", JSON.stringify({ anfragendeUstid: "DE123456789", angefragteUstid: target }))
}

const headOf = ({ text }: Received) => text.split("\r\n\r\n", 1).join("")
const bodyOf = ({ text }: Received) => text.slice(headOf({ text, bytes: 0, error: null }).length + 4)
const promised = (received: Received) => Number(/content-length: (\d+)/iu.exec(headOf(received))?.[1])
const isJson = (text: string) => Result.isSuccess(Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))(text))

const services = Sandbox.layer({ host: "127.0.0.1", port: 0 })

const both = ["vies", "bzst"] as const
/** Returns the magic number for which only `source` has the fault. */
const only = (source: "vies" | "bzst", fault: string) => `999${source === "vies" ? 7 : 8}${fault}`

layer(services, { excludeTestServices: true })("a simulated source", (it) => {
  it.effect("resets the connection before the first byte", function* () {
    for (const source of both) {
      const received = yield* raw(ask(source, only(source, "04")))
      assert.deepStrictEqual(received, { text: "", bytes: 0, error: "ECONNRESET" })
    }
  })

  it.effect("resets the connection in the middle of the body", function* () {
    for (const source of both) {
      const received = yield* raw(ask(source, only(source, "05")))
      assert.strictEqual(received.error, "ECONNRESET")
      assert.match(received.text, /^HTTP\/1\.1 200 OK\r\n/u)
      assert.strictEqual(Buffer.byteLength(bodyOf(received)), Math.floor(promised(received) / 2))
    }
  })

  it.effect("ends the connection without an error after fewer bytes than Content-Length", function* () {
    for (const source of both) {
      const received = yield* raw(ask(source, only(source, "12")))
      assert.strictEqual(received.error, null)
      assert.strictEqual(Buffer.byteLength(bodyOf(received)), Math.floor(promised(received) / 2))
    }
  })

  it.effect("sends a complete response whose JSON is truncated", function* () {
    for (const source of both) {
      const received = yield* raw(ask(source, only(source, "06")))
      assert.strictEqual(received.error, null)
      assert.strictEqual(Buffer.byteLength(bodyOf(received)), promised(received))
      assert.match(bodyOf(received), /^\{"/u)
      assert.isFalse(isJson(bodyOf(received)))
    }
  })

  it.effect("sends an HTML page or an empty body with status 200 instead of JSON", function* () {
    for (const source of both) {
      const html = yield* raw(ask(source, only(source, "07")))
      assert.match(html.text, /^HTTP\/1\.1 200 OK\r\ncontent-type: text\/html/u)
      assert.match(bodyOf(html), /^<!DOCTYPE html>/u)
      const empty = yield* raw(ask(source, only(source, "08")))
      assert.match(empty.text, /^HTTP\/1\.1 200 OK\r\ncontent-type: application\/json/u)
      assert.strictEqual(promised(empty), 0)
      assert.strictEqual(bodyOf(empty), "")
    }
  })

  it.effect("sends JSON whose values have wrong types", function* () {
    const vies = bodyOf(yield* raw(ask("vies", "999709")))
    assert.match(vies, /^\{"countryCode":2,"vatNumber":9,"requestDate":24,"valid":"true",/u)
    const bzst = bodyOf(yield* raw(ask("bzst", "999809")))
    assert.match(bzst, /^\{"id":16,"anfrageZeitpunkt":\d+,"status":10/u)
  })

  it.effect("sends 100 MB of JSON to a client that reads the whole response", function* () {
    const received = yield* raw(ask("vies", "999710"))
    assert.strictEqual(received.error, null)
    assert.strictEqual(promised(received), hugeBytes)
    assert.isAtLeast(hugeBytes, 100_000_000)
    assert.strictEqual(received.bytes - Buffer.byteLength(headOf(received)) - 4, hugeBytes)
    assert.match(bodyOf(received), /^\{"padding":"xxx/u)
  })

  it.effect("stops sending 100 MB when the client disconnects", function* () {
    const sandbox = yield* Sandbox.Sandbox
    yield* sandbox.reset
    const received = yield* raw(ask("bzst", "999810"), 300_000)
    assert.isBelow(received.bytes, 10_000_000)
    yield* sandbox.until(({ bzst, entries }) => bzst.in_flight === 0 && entries.at(-1)?.abandoned === true)
  })

  it.effect("sends its response byte by byte", function* () {
    const sandbox = yield* Sandbox.Sandbox
    yield* sandbox.reset
    const head = yield* raw(ask("vies", "999711"), 1)
    const begun = yield* Clock.currentTimeMillis
    const received = yield* raw(ask("vies", "999711"), Buffer.byteLength(headOf(head)) + 4 + 3)
    // A busy machine may deliver a few bytes together.
    assert.match(bodyOf(received), /^\{"c.{0,20}$/u)
    assert.isAtLeast((yield* Clock.currentTimeMillis) - begun, 590)
    yield* sandbox.until(({ vies }) => vies.in_flight === 0)
  })

  it.effect("hangs until the client disconnects", function* () {
    for (const source of both) {
      const sandbox = yield* Sandbox.Sandbox
      yield* sandbox.reset
      const fiber = yield* Effect.forkScoped(raw(ask(source, only(source, "03"))), { startImmediately: true })
      yield* sandbox.until((journal) => journal[source].in_flight === 1)
      yield* Fiber.interrupt(fiber)
      yield* sandbox.until((journal) => journal[source].in_flight === 0)
      const [entry] = (yield* sandbox.journal()).entries
      assert.deepInclude(entry, { source, outcome: "hang", http_status: null, abandoned: true })
    }
  })

  it.effect("sends HTTP errors as HTML pages, with Retry-After for 429 and 503", function* () {
    for (const [source, status] of [
      ...both.map((source) => [source, 429] as const),
      ["vies", 500],
      ["bzst", 502],
      ["vies", 503],
      ["bzst", 504]
    ] as const) {
      const received = yield* raw(ask(source, only(source, String(status).replace("429", "29").replace("50", "5"))))
      assert.match(received.text, new RegExp(`^HTTP/1\\.1 ${status} `, "u"))
      assert.match(headOf(received), /content-type: text\/html/iu)
      assert.strictEqual(/retry-after: 2\r\n/iu.test(headOf(received)), status === 429 || status === 503)
    }
  })

  it.effect(
    "fails the first calls for a magic number with a temporary fault, and then answers; each source counts its own calls",
    function* () {
      const sandbox = yield* Sandbox.Sandbox
      const viesSays = Effect.map(raw(ask("vies", "999932")), (received) => bodyOf(received).includes('"valid":true'))
      const bzstSays = Effect.map(raw(ask("bzst", "999932")), (received) => bodyOf(received).includes('"evatr-0000"'))
      yield* sandbox.reset
      assert.deepStrictEqual(yield* Effect.all([viesSays, viesSays, viesSays, viesSays]), [false, false, true, true])
      assert.deepStrictEqual(yield* Effect.all([bzstSays, bzstSays, bzstSays]), [false, false, true])
      yield* sandbox.reset
      assert.isFalse(yield* viesSays)
      const reset = yield* raw(ask("vies", "999734"))
      assert.strictEqual(reset.error, "ECONNRESET")
      assert.include(bodyOf(yield* raw(ask("vies", "999734"))), '"valid":true')
    }
  )

  it.effect("answers normally for a magic number that causes a fault only at the other source (VIES or the BZSt)", function* () {
    for (const [ending] of [...magicNumbers].filter(([ending]) => /^999[78]\d\d$/u.test(ending))) {
      const other = ending.startsWith("9997") ? "bzst" : "vies"
      const received = yield* raw(ask(other, ending))
      assert.include(bodyOf(received), other === "vies" ? '"valid":true' : '"evatr-0000"', ending)
    }
  })

  it.effect("rejects an oversized body, and a malformed HTTP request", function* () {
    const tooLarge = yield* raw(post("/app/v1/abfrage", "x".repeat(300_000)))
    assert.match(tooLarge.text, /^HTTP\/1\.1 413 /u)
    const noHttp = yield* raw("HELLO\r\n\r\n")
    assert.match(noHttp.text, /^HTTP\/1\.1 400 /u)
    const oddPath = yield* raw("GET // HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert.match(oddPath.text, /^HTTP\/1\.1 404 /u)
  })
})
