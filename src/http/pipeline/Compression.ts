/** Compresses long text responses for clients that accept it. Short and binary responses are sent unchanged. */
import { Effect, Option, Stream } from "effect"
import { HttpBody, HttpPlatform, type HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Negotiation from "#http/wire/Negotiation.ts"

/** Bounds of the uncompressed length, in bytes. Compression saves too little for a shorter body, and a longer body would occupy a thread for too long. */
const lengths = { minimum: 1_024, maximum: 8 * 1_024 * 1_024 }
/** Maximum number of concurrent compressions, because they share a thread pool with password hashing. Further responses are sent uncompressed. */
const maxRunning = 2
/** Maximum number of streams that are compressed at the same time, because each needs up to 5 MB of memory. */
const maxStreams = 16
const text = /^(?:text\/|application\/(?:x-nd)?json|image\/svg\+xml)/u

/** The supported codings, the preferred one first. */
const codings = ["br", "gzip"] as const
/** Compression levels that take about 10 ms per MB. */
const levels = { br: { level: 4 }, gzip: { level: 6 } }
type Coding = (typeof codings)[number]

type Response = HttpServerResponse.HttpServerResponse

/** Creates a function that returns the response, compressed if possible. */
export const make = Effect.map(HttpPlatform.HttpPlatform, ({ compression }) => {
  // Caches compressed bodies, by the object with the uncompressed bytes. A static document has the same object in each response, so it
  // is compressed once.
  const compressedBodies = new WeakMap<Uint8Array, Map<Coding, Uint8Array>>()
  let running = 0
  let streams = 0

  const compressed = (plain: Uint8Array, coding: Coding): Effect.Effect<Uint8Array> => {
    const existing = compressedBodies.get(plain)
    const bytes = existing?.get(coding)
    if (bytes !== undefined) return Effect.succeed(bytes)
    running += 1
    return compression.compressResponse(HttpServerResponse.uint8Array(plain), coding, levels[coding]).pipe(
      Effect.map(({ body }) => {
        const made = body._tag === "Uint8Array" ? body.body : plain
        compressedBodies.set(plain, (existing ?? new Map<Coding, Uint8Array>()).set(coding, made))
        return made
      }),
      Effect.ensuring(Effect.sync(() => (running -= 1)))
    )
  }

  const compressedStream = (response: Response, { contentType, stream }: HttpBody.Stream, coding: Coding) => {
    const end = Effect.sync(() => (streams -= 1))
    const counted = Stream.suspend(() => {
      streams += 1
      return Stream.ensuring(stream, end)
    })
    const encoded = HttpServerResponse.setHeader(response, "content-encoding", coding)
    const plain = HttpServerResponse.setBody(encoded, HttpBody.stream(counted, contentType))
    return compression.compressResponse(plain, coding, levels[coding])
  }

  return (request: HttpServerRequest.HttpServerRequest, response: Response): Effect.Effect<Response> => {
    const { body, headers } = response
    // Most responses, such as validations, are too short for compression and are returned here.
    if (body._tag !== "Uint8Array" && body._tag !== "Stream") return Effect.succeed(response)
    if (body._tag === "Uint8Array" && (body.contentLength < lengths.minimum || body.contentLength > lengths.maximum)) {
      return Effect.succeed(response)
    }
    if (!text.test(headers["content-type"] ?? body.contentType)) return Effect.succeed(response)
    const vary = headers["vary"] === undefined ? "Accept-Encoding" : `${headers["vary"]}, Accept-Encoding`
    const varying = HttpServerResponse.setHeader(response, "vary", vary)
    const coding = Negotiation.contentCoding(request.headers["accept-encoding"], codings)
    if (Option.isNone(coding)) return Effect.succeed(varying)
    if (body._tag === "Stream")
      return streams < maxStreams ? compressedStream(varying, body, coding.value) : Effect.succeed(varying)
    if (running >= maxRunning) return Effect.succeed(varying)
    return Effect.map(compressed(body.body, coding.value), (bytes) => {
      const etag = headers["etag"]
      const type = headers["content-type"] ?? body.contentType
      return HttpServerResponse.setHeaders(HttpServerResponse.setBody(varying, HttpBody.uint8Array(bytes, type)), {
        "content-encoding": coding.value,
        ...(etag === undefined ? {} : { etag: `W/${etag}` })
      })
    })
  }
})
