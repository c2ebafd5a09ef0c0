import { Context, Effect, Layer, Schema } from "effect"
import { get, listen, listenAlone, post, served } from "#test/support/ListeningServer.ts"
import type * as RawHttp from "#test/support/RawHttp.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Requests with and without bodies. Some bodies look like another request. */
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

/** Inputs after which the server closes the connection, with a response or an error. */
const lastRequests = [
  get("/last", "Connection: close"),
  "GET /quick HTTP/1.0\r\n\r\n",
  "GET /quick HTTP/1.1\nHost: x\n\n",
  get("/quick", "Content-Length : 5"),
  get("/quick", "A: b\r\n c", "Connection: close"),
  "nonsense\r\n\r\n"
]

/** Returns status and body of each response. A response to HEAD has no body. */
const outcomesOf = (text: string) =>
  text
    .split("HTTP/1.1 ")
    .slice(1)
    .map((response) => `${response.slice(0, 3)} ${/<[^>]*>/u.exec(response)?.[0] ?? ""}`)

/** Sends pieces of these lengths, then the rest. After each piece, another client's request ensures that the server has read the piece. */
const sendPieces = Effect.fnUntraced(function* (
  connect: ReturnType<typeof RawHttp.open>,
  client: RawHttp.Client,
  bytes: string,
  lengths: ReadonlyArray<number>
) {
  let at = 0
  for (const length of [...lengths, bytes.length].filter((each) => each > 0)) {
    if (at >= bytes.length) return
    yield* client.send(bytes.slice(at, at + length))
    yield* served(yield* connect)
    at += length
  }
})

/** Returns the lengths of the pieces of a request: one piece, or two pieces, cut after the head or at `place`. */
const cutsOf = (request: string, place: number) => {
  const head = request.indexOf("\r\n\r\n") + 4
  const cut = [request.length, head, Math.min(place, request.length)][place % 3] ?? 0
  return [cut, request.length - cut]
}

/** Functions that connect to the same app behind the service's HTTP listener (`connect`) and behind Node's own server (`connectAlone`). */
class Servers extends Context.Service<
  Servers,
  { readonly connect: ReturnType<typeof RawHttp.open>; readonly connectAlone: ReturnType<typeof RawHttp.open> }
>()("vatproof/test/Servers") {}

const servers = Layer.effect(
  Servers,
  Effect.gen(function* () {
    const { connect } = yield* listen
    return { connect, connectAlone: yield* listenAlone }
  })
)

layer(servers, { excludeTestServices: true })("the bytes of a client", (it) => {
  const place = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90 }))
  const part = Schema.Struct({ request: Schema.Literals(requests), place })

  it.effect.prop(
    "get the same responses as from Node's own HTTP server, however the bytes are split into packets",
    [Schema.Array(part).check(Schema.isMaxLength(6))],
    ([parts]) =>
      Effect.gen(function* () {
        const bytes = [...parts.map(({ request }) => request), get("/last", "Connection: close")].join("")
        const { connect, connectAlone } = yield* Servers
        const [ours, theirs] = [yield* connect, yield* connectAlone]
        yield* sendPieces(
          connect,
          ours,
          bytes,
          parts.flatMap((each) => cutsOf(each.request, each.place))
        )
        yield* theirs.send(bytes)
        assert.deepStrictEqual(outcomesOf(yield* ours.closed), outcomesOf(yield* theirs.closed))
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 200 } }
  )

  it.effect(
    "get the same last response on a connection as from Node's own HTTP server, however the bytes are split into two packets",
    function* () {
      const { connect, connectAlone } = yield* Servers
      for (const last of lastRequests) {
        const theirs = yield* connectAlone
        yield* theirs.send(last)
        const expected = outcomesOf(yield* theirs.closed)
        assert.lengthOf(expected, 1, last)
        for (let cut = 0; cut < last.length; cut += 1) {
          const ours = yield* connect
          yield* sendPieces(connect, ours, last, [cut])
          assert.deepStrictEqual(outcomesOf(yield* ours.closed), expected, `${last} cut at ${cut}`)
        }
      }
    }
  )
})
