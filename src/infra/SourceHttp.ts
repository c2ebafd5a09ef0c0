/**
 * One bounded exchange with an official source: a JSON request over HTTP, and whatever came back.
 *
 * The bounds cover connection, headers and body together, and the body's size while it streams in. The content type is not
 * trusted: the body decides. Nothing is repeated here, and no redirect is followed (Undici follows none).
 * No trace headers go to the authorities and there is no HTTP span: what it would show is in the caller's span.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Clock, Effect, Option, Predicate, Schema, Stream, type Duration } from "effect"
import { Headers, HttpClient, HttpClientRequest, type HttpClientError, type HttpClientResponse } from "effect/http"
import { hash } from "node:crypto"
import { calendarDate } from "#domain/CalendarDate.ts"
import { type Evidence, SourceFailure, type SourceName } from "#domain/Verdict.ts"
import * as SourceMetrics from "#infra/SourceMetrics.ts"

/** Why a source gave no verdict, without the code that said so: a row's right side in the sources' code tables. */
export type Fault = Pick<SourceFailure, "reason" | "scope" | "retry">

/** What came back: `json` is undefined when the body is not JSON, `retryAfterS` is null unless a 429 or 503 named a time. */
export interface Exchange {
  readonly evidence: Evidence
  readonly json: unknown
  readonly retryAfterS: number | null
}

/** An answer is at most a few kilobytes; more than this is not an answer. */
const maxBodyBytes = 256 * 1024

/** A source that asks for a longer pause is asked again after this all the same: outages end sooner than announced. */
export const maxRetryAfterS = 600

/** The client for sources. Who has not taken a connection by then will not: a time-out of its own tells that from a question that hangs. */
export const layerClient = NodeHttpClient.layerUndiciOptions({ connect: { timeout: 4_000 } })

const userAgent = "vatproof/0.1.0"

/**
 * The time of an answer: ISO 8601 with an offset and up to nine fractional digits, kept in milliseconds. Of a day and an hour that exist,
 * where JavaScript takes 31 November for 1 December.
 */
export const Instant = Schema.String.check(
  Schema.isPattern(
    /^(?:19|2\d)\d\d-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/u
  ),
  Schema.makeFilter((text: string) => Option.isSome(calendarDate(text.slice(0, 10))))
).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

/** A text that a source may leave out. */
export const OptionalText = Schema.optionalKey(Schema.NullOr(Schema.String))

/**
 * What a text field discloses: null for `---` (VIES' word for "not disclosed"), blank or absent text. Unpaired surrogates and
 * NUL, which neither UTF-8 nor Postgres can hold, are replaced, because a verdict must not be lost to a character in a name.
 */
export const disclosed = (text: string | null | undefined): string | null => {
  const trimmed = (text ?? "").toWellFormed().replaceAll("\0", "\uFFFD").trim()
  return trimmed === "" || trimmed === "---" ? null : trimmed
}

/** No connection in time. */
const timedOut: Fault = { reason: "timeout", scope: "source", retry: "later" }
/** A connection and no answer in time: mostly it is a member state's register that hangs, not the source in front of it. */
export const hung: Fault = { ...timedOut, scope: "member_state" }
const broken: Fault = { reason: "unreachable", scope: "source", retry: "soon" }
/** An answer that is not what the source's contract says. */
export const malformed: Fault = { reason: "malformed", scope: "source", retry: "soon" }

/** The failure that an exchange means. `code` is the source's own word, or `HTTP 502` when it only has a status. */
export const failure = (source: SourceName, exchange: Exchange, code: string | null, fault: Fault): SourceFailure =>
  failed(source, fault, code, exchange.retryAfterS)

/** The failure of a body that says nothing in the source's own terms: the HTTP status is all there is to go by. */
export const wordless = (source: SourceName, exchange: Exchange): SourceFailure =>
  failedByStatus(source, exchange.evidence.http_status, exchange.retryAfterS)

/** The exchanges with one source. `get` and `post` take a path below the base URL; `within` bounds several exchanges as one. */
export const make = Effect.fnUntraced(function* (
  source: SourceName,
  options: { readonly baseUrl: string; readonly timeout: Duration.Input }
) {
  const client = HttpClient.withScope(yield* HttpClient.HttpClient)
  const baseUrl = options.baseUrl.replace(/\/+$/u, "")

  const within = <A>(effect: Effect.Effect<A, SourceFailure>): Effect.Effect<A, SourceFailure> =>
    Effect.timeoutOrElse(effect, {
      duration: options.timeout,
      orElse: () => Effect.fail(failed(source, hung, null, null))
    })

  const exchange = (request: HttpClientRequest.HttpClientRequest, body: string): Effect.Effect<Exchange, SourceFailure> =>
    client.execute(request).pipe(
      Effect.mapError((error) => transportFailure(source, error)),
      Effect.flatMap((response) => read(source, body, response)),
      // Closing the scope aborts what is still under way, so an interrupted caller leaves no request and no socket behind.
      Effect.scoped,
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      within,
      SourceMetrics.measured(request.method, baseUrl, (exchanged) => exchanged.evidence.http_status)
    )

  return {
    within,
    get: (path: string) => exchange(HttpClientRequest.get(`${baseUrl}${path}`, { headers }), ""),
    post: (path: string, body: Readonly<Record<string, string>>) => {
      const text = JSON.stringify(body)
      const request = HttpClientRequest.post(`${baseUrl}${path}`, { headers })
      return exchange(HttpClientRequest.bodyText(request, text, "application/json"), text)
    }
  }
})

/** `identity`, because the evidence is the body's bytes as they came. */
const headers = { accept: "application/json", "accept-encoding": "identity", "user-agent": userAgent }

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const parseJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

const read = Effect.fnUntraced(function* (source: SourceName, request: string, response: HttpClientResponse.HttpClientResponse) {
  const retryAfterS = yield* retryAfter(response)
  const unreadable = () => failedByStatus(source, response.status, retryAfterS)
  const bytes = yield* readBody(source, response, unreadable)
  const text = yield* Effect.try({ try: () => decoder.decode(bytes), catch: unreadable })
  return {
    evidence: {
      request,
      response: text,
      response_sha256: hash("sha256", bytes, "hex"),
      http_status: response.status
    },
    json: Option.getOrUndefined(parseJson(text)),
    retryAfterS
  }
})

const readBody = (source: SourceName, response: HttpClientResponse.HttpClientResponse, tooLarge: () => SourceFailure) =>
  response.stream.pipe(
    Stream.mapError((error) => transportFailure(source, error)),
    Stream.runFoldEffect(
      (): { readonly chunks: Array<Uint8Array>; bytes: number } => ({ chunks: [], bytes: 0 }),
      (body, chunk) => {
        body.chunks.push(chunk)
        body.bytes += chunk.byteLength
        return body.bytes > maxBodyBytes ? Effect.fail(tooLarge()) : Effect.succeed(body)
      }
    ),
    Effect.map((body) => Buffer.concat(body.chunks))
  )

/** Seconds from a `Retry-After` header, which holds either seconds or a date (RFC 9110, 10.2.3). */
const retryAfter = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
  const header = Headers.get(response.headers, "retry-after")
  if (Option.isNone(header) || (response.status !== 429 && response.status !== 503)) return null
  if (/^\d+$/u.test(header.value)) return Math.min(Number(header.value), maxRetryAfterS)
  const at = parseHttpDate(header.value)
  if (Option.isNone(at)) return null
  const seconds = Math.ceil((at.value.epochMilliseconds - (yield* Clock.currentTimeMillis)) / 1000)
  return Math.min(Math.max(seconds, 0), maxRetryAfterS)
})

const parseHttpDate = Schema.decodeUnknownOption(Schema.DateTimeUtcFromHttpDate)

const failed = (source: SourceName, fault: Fault, code: string | null, retryAfterS: number | null) =>
  new SourceFailure({ source, ...fault, code, ...(retryAfterS === null ? {} : { retry_after_s: retryAfterS }) })

const failedByStatus = (source: SourceName, status: number, retryAfterS: number | null) =>
  failed(source, faultOfStatus(status, retryAfterS), status === 200 ? null : `HTTP ${status}`, retryAfterS)

const faultOfStatus = (status: number, retryAfterS: number | null): Fault => {
  if (status === 429) return { reason: "throttled", scope: "source", retry: "later" }
  // A firewall's way to bar an address; both sources put their own refusals into JSON.
  if (status === 403) return { reason: "blocked", scope: "source", retry: "later" }
  if (status < 500) return malformed
  const later = status === 503 || status === 504 || retryAfterS !== null
  return { reason: "unavailable", scope: "source", retry: later ? "later" : "soon" }
}

const transportFailure = (source: SourceName, error: HttpClientError.HttpClientError) => {
  const code = transportCode("cause" in error.reason ? error.reason.cause : undefined)
  return failed(source, code === null ? broken : faultOfTransport(code), code, null)
}

/** Node's or undici's error code; undici's parser leaves it out, so its name must do. */
const transportCode = (cause: unknown): string | null => {
  if (Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code)) return cause.code
  return Predicate.hasProperty(cause, "name") && cause.name === notHttp ? notHttp : null
}

const notHttp = "HTTPParserError"

const contractErrors: ReadonlySet<string> = new Set([notHttp, "UND_ERR_HEADERS_OVERFLOW", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"])

const faultOfTransport = (code: string): Fault => {
  if (code === "ETIMEDOUT" || code.endsWith("_TIMEOUT")) return timedOut
  return contractErrors.has(code) || code.startsWith("HPE_") ? malformed : broken
}
