import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { get, listen, listenAlone, post } from "#test/support/ListeningServer.ts"
import type * as RawHttp from "#test/support/RawHttp.ts"

/** Requests that are plain, that are nearly so, and that are not. */
const requests = [
  get("/quick"),
  get("/quick"),
  get("/quick", "Connection: keep-alive", "X-Api-Key: k"),
  get("/other?a=b"),
  post("/upload", ""),
  post("/upload", get("/quick")),
  "HEAD /other HTTP/1.1\r\nHost: x\r\n\r\n",
  `POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n${get("/quick").slice(0, 28)}\r\n0\r\n\r\n`,
  "GET /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nGET",
  "\r\nGET /quick HTTP/1.1\r\n\r\n"
]

/** After these the connection ends, whether they are answered or refused. */
const lastRequests = [
  get("/last", "Connection: close"),
  "GET /quick HTTP/1.0\r\n\r\n",
  "GET /quick HTTP/1.1\nHost: x\n\n",
  get("/quick", "Content-Length : 5"),
  get("/quick", "A: b\r\n c", "Connection: close"),
  "nonsense\r\n\r\n"
]

/** The statuses and bodies, also of responses whose bodies are nowhere. */
const outcomesOf = (text: string) =>
  text
    .split("HTTP/1.1 ")
    .slice(1)
    .map((response) => `${response.slice(0, 3)} ${/<[^>]*>/u.exec(response)?.[0] ?? ""}`)

/** In pieces of these lengths, and what is left. */
const sendPieces = Effect.fnUntraced(function* (client: RawHttp.Client, bytes: string, lengths: ReadonlyArray<number>) {
  let at = 0
  for (const length of [...lengths, bytes.length]) {
    yield* client.send(bytes.slice(at, at + length))
    yield* Effect.yieldNow
    at += length
  }
})

layer(Layer.empty, { excludeTestServices: true })("what a client sends", (it) => {
  const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 90 }))

  it.effect.prop(
    "is answered as by Node's server alone, in whatever pieces it comes",
    [Schema.Array(Schema.Literals(requests)).check(Schema.isMaxLength(6)), Schema.Array(count)],
    ([sent, lengths]) =>
      Effect.gen(function* () {
        const bytes = [...sent, get("/last", "Connection: close")].join("")
        const [ours, theirs] = [yield* (yield* listen).connect, yield* yield* listenAlone]
        yield* sendPieces(ours, bytes, lengths)
        yield* theirs.send(bytes)
        assert.deepStrictEqual(outcomesOf(yield* ours.closed), outcomesOf(yield* theirs.closed))
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 200 } }
  )

  it.effect("ends its connection as with Node's server alone, wherever it is cut", () =>
    Effect.gen(function* () {
      const { connect } = yield* listen
      const connectAlone = yield* listenAlone
      for (const last of lastRequests) {
        const theirs = yield* connectAlone
        yield* theirs.send(last)
        const expected = outcomesOf(yield* theirs.closed)
        assert.lengthOf(expected, 1, last)
        for (let cut = 0; cut < last.length; cut += 1) {
          const ours = yield* connect
          yield* sendPieces(ours, last, [cut])
          assert.deepStrictEqual(outcomesOf(yield* ours.closed), expected, `${last} cut at ${cut}`)
        }
      }
    }).pipe(Effect.scoped)
  )
})
