/**
 * One exchange with an official source: a JSON request over HTTP and its response.
 *
 * One timeout covers connection, headers and body together. The size of the body is checked while the body arrives. The body is
 * parsed as JSON whatever its content type is. An exchange retries nothing and follows no redirect (undici follows none). It
 * sends no trace headers to the authorities. Its attributes are in the span of the attempt, because an exchange has no span of
 * its own. The requests go directly to undici's dispatcher: with Effect's HttpClient, they would take twice the CPU time of the
 * whole look-up.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { Dispatcher } from "@effect/platform-node/Undici"
import { Clock, DateTime, Duration, Effect, Option, Predicate, Result, Schema } from "effect"
import { hash } from "node:crypto"
import { calendarDate } from "#domain/text/CalendarDate.ts"
import { version } from "#domain/kernel/Version.ts"
import { type Evidence, SourceFailure, type SourceName } from "#domain/vat/Verdict.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

/** The reason why a source gave no verdict. For each source, a table maps its codes to faults. */
export type Fault = Pick<SourceFailure, "reason" | "scope" | "retry">

/**
 * The result of an exchange. `receivedAtMs` is the time of its end by the clock of the service. `json` is undefined if the body is not JSON or repeats a key. `retryAfterS` is the `Retry-After` of
 * a 429 or 503, otherwise null.
 */
export interface Exchange {
  readonly evidence: Evidence
  readonly receivedAtMs: number
  readonly json: unknown
  readonly retryAfterS: number | null
}

/** The largest body that is read; answers have a few kilobytes. */
const maxBodyBytes = 256 * 1024

/** The longest pause that a source can request, in seconds. It is limited, because outages often end sooner than announced. */
export const maxRetryAfterS = 600

/**
 * The HTTP client for the sources. A short connect timeout distinguishes an unreachable source from a request that hangs.
 * undici's other timeouts are off, because an exchange has a timeout of its own.
 */
export const layerClient = NodeHttpClient.layerDispatcherOptions({
  connect: { timeout: 4_000 },
  headersTimeout: 0,
  bodyTimeout: 0
})

const userAgent = `vatproof/${version}`

/**
 * The time of an answer: ISO 8601 with an offset and up to nine fractional digits, decoded to milliseconds. Rejects a day that does
 * not exist: JavaScript would take 31 November for 1 December.
 */
export const Instant = Schema.String.check(
  Schema.isPattern(
    /^(?:19|2\d)\d\d-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/u
  ),
  Schema.makeFilter((text: string) => Option.isSome(calendarDate(text.slice(0, 10))))
).pipe(Schema.decodeTo(Schema.DateTimeUtcFromString))

/**
 * Returns true if an answer arrived within a day of the time that it names. A later time would keep the answer the newest one, and an
 * earlier time would not be the time of this question.
 */
export const isTimely = ({ receivedAtMs }: Exchange, answeredAt: DateTime.Utc): boolean =>
  Math.abs(DateTime.toEpochMillis(answeredAt) - receivedAtMs) <= Duration.toMillis("1 day")

/** A text that a source may leave out. */
export const OptionalText = Schema.optionalKey(Schema.NullOr(Schema.String))

/**
 * Returns the text of a field; null if the text is `---` (VIES' word for "not disclosed"), blank or absent. Replaces unpaired
 * surrogates, which UTF-8 cannot hold, and NUL, which Postgres cannot hold, so that a character in a name does not cost a
 * verdict.
 */
export const disclosed = (text: string | null | undefined): string | null => {
  const trimmed = (text ?? "").toWellFormed().replaceAll("\0", "\uFFFD").trim()
  return trimmed === "" || trimmed === "---" ? null : trimmed
}

/** The fault if no connection was established within the timeout. */
const timedOut: Fault = { reason: "timeout", scope: "source", retry: "later" }
/** The fault if a connection got no answer within the timeout. Usually the register of a member state hangs, not the source. */
export const hung: Fault = { ...timedOut, scope: "member_state" }
const broken: Fault = { reason: "unreachable", scope: "source", retry: "soon" }
/** The fault of an answer that violates the source's contract. */
export const malformed: Fault = { reason: "malformed", scope: "source", retry: "soon" }

/** Returns the failure of an exchange. `code` is the source's own code, or `HTTP 502` if there is only a status. */
export const failure = (source: SourceName, exchange: Exchange, code: string | null, fault: Fault): SourceFailure =>
  failed(source, fault, code, exchange.retryAfterS)

/** Returns the failure of an exchange whose body has no code of the source: only the HTTP status is known. */
export const failureWithoutCode = (source: SourceName, exchange: Exchange): SourceFailure =>
  failedByStatus(source, exchange.evidence.http_status, exchange.retryAfterS)

/** With `keepAlive: false`, each exchange has a connection of its own. */
interface Options {
  readonly baseUrl: string
  readonly timeout: Duration.Input
  readonly keepAlive?: boolean
}

/**
 * Returns the client of one source. `get` and `post` make an exchange with a path below the base URL. `within` limits several
 * exchanges together to the timeout of one exchange.
 */
export const make = Effect.fnUntraced(function* (source: SourceName, options: Options) {
  const dispatcher = yield* NodeHttpClient.Dispatcher
  const base = URL.parse(options.baseUrl)
  const folder = base?.pathname.replace(/\/+$/u, "") ?? ""
  const reset = options.keepAlive === false
  const measured = SourceMetrics.measured(base)

  const within = <A>(effect: Effect.Effect<A, SourceFailure>): Effect.Effect<A, SourceFailure> =>
    Effect.timeoutOrElse(effect, {
      duration: options.timeout,
      orElse: () => Effect.fail(failed(source, hung, null, null))
    })

  const exchange = (method: "GET" | "POST", path: string, body: string): Effect.Effect<Exchange, SourceFailure> => {
    if (base === null) return Effect.fail(failed(source, broken, "ERR_INVALID_URL", null))
    const headers = method === "GET" ? getHeaders : postHeaders
    const response = receive(source, dispatcher, { origin: base.origin, path: `${folder}${path}`, method, headers, body, reset })
    const read = Effect.flatMap(response, (received) =>
      Effect.flatMap(Clock.currentTimeMillis, (nowMs) => Effect.fromResult(readResponse(source, body, received, nowMs)))
    )
    return measured({ method, path }, within(read), (exchanged) => exchanged.evidence.http_status)
  }

  return {
    within,
    get: (path: string) => exchange("GET", path, ""),
    post: (path: string, body: Readonly<Record<string, string>>) => exchange("POST", path, JSON.stringify(body))
  }
})

/** Requests no compression (`identity`), because the evidence is the body's exact bytes. */
const getHeaders = { accept: "application/json", "accept-encoding": "identity", "user-agent": userAgent }
const postHeaders = { ...getHeaders, "content-type": "application/json" }

/** A complete response. `bytes` is null if the body is too large. */
interface Received {
  readonly status: number
  readonly retryAfter: string | null
  readonly bytes: Uint8Array | null
}

/** Sends a request and collects its response. An interruption aborts the request and closes its connection. */
const receive = (source: SourceName, dispatcher: Dispatcher, request: Dispatcher.DispatchOptions) =>
  Effect.callback<Received, SourceFailure>((resume) => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    let status = 0
    let retryAfter: string | null = null
    let running: Dispatcher.DispatchController | null = null
    let isInterrupted = false
    dispatcher.dispatch(request, {
      onRequestStart: (controller) => {
        running = controller
        if (isInterrupted) controller.abort(aborted())
      },
      onResponseStart: (_, statusCode, headers) => {
        const header = headers["retry-after"]
        status = statusCode
        retryAfter = typeof header === "string" ? header : null
      },
      onResponseData: (controller, chunk) => {
        chunks.push(chunk)
        size += chunk.byteLength
        if (size <= maxBodyBytes) return
        resume(Effect.succeed({ status, retryAfter, bytes: null }))
        controller.abort(aborted())
      },
      onResponseEnd: () => resume(Effect.succeed({ status, retryAfter, bytes: Buffer.concat(chunks) })),
      onResponseError: (_, error) => resume(Effect.fail(transportFailure(source, error)))
    })
    return Effect.sync(() => {
      isInterrupted = true
      running?.abort(aborted())
    })
  })

const aborted = () => new Error("The request was aborted")

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const Json = Schema.fromJsonString(Schema.Unknown)
const parseJson = Schema.decodeUnknownOption(Json)
const formatJson = Schema.encodeUnknownOption(Json)

/** Matches a string of a JSON text, and the colon after it if the string is a key. */
const jsonString = /"(?:[^"\\]|\\.)*"(\s*:)?/gu
const countKeys = (text: string) => [...text.matchAll(jsonString)].filter(([_, colon]) => colon !== undefined).length

/** Parses a JSON text. Rejects an object that repeats a key, because the two values may contradict each other. */
const parseUnambiguousJson = (text: string): Option.Option<unknown> =>
  Option.filter(parseJson(text), (json) => Option.exists(formatJson(json), (once) => countKeys(once) === countKeys(text)))

const readResponse = (source: SourceName, request: string, { bytes, retryAfter, status }: Received, nowMs: number) => {
  const retryAfterS = status === 429 || status === 503 ? secondsOf(retryAfter, nowMs) : null
  const text = Result.try({
    try: () => (bytes === null ? null : decoder.decode(bytes)),
    catch: () => failedByStatus(source, status, retryAfterS)
  })
  if (Result.isFailure(text)) return Result.fail(text.failure)
  if (bytes === null || text.success === null) return Result.fail(failedByStatus(source, status, retryAfterS))
  const evidence = { request, response: text.success, response_sha256: hash("sha256", bytes, "hex"), http_status: status }
  const json = Option.getOrUndefined(parseUnambiguousJson(text.success))
  return Result.succeed<Exchange>({ evidence, receivedAtMs: nowMs, json, retryAfterS })
}

/** Seconds from a `Retry-After` header, which holds either seconds or a date (RFC 9110, 10.2.3). */
const secondsOf = (retryAfter: string | null, nowMs: number): number | null => {
  if (retryAfter === null) return null
  if (/^\d+$/u.test(retryAfter)) return Math.min(Number(retryAfter), maxRetryAfterS)
  const at = parseHttpDate(retryAfter)
  if (Option.isNone(at)) return null
  const seconds = Math.ceil((at.value.epochMilliseconds - nowMs) / 1000)
  return Math.min(Math.max(seconds, 0), maxRetryAfterS)
}

const parseHttpDate = Schema.decodeUnknownOption(Schema.DateTimeUtcFromHttpDate)

const failed = (source: SourceName, fault: Fault, code: string | null, retryAfterS: number | null) =>
  new SourceFailure({ source, ...fault, code, ...(retryAfterS === null ? {} : { retry_after_s: retryAfterS }) })

const failedByStatus = (source: SourceName, status: number, retryAfterS: number | null) =>
  failed(source, faultOfStatus(status, retryAfterS), status === 200 ? null : `HTTP ${status}`, retryAfterS)

const faultOfStatus = (status: number, retryAfterS: number | null): Fault => {
  if (status === 429) return { reason: "throttled", scope: "source", retry: "later" }
  // A 403 without an error code of the source in its body comes from a firewall that blocks Vatproof's IP address.
  if (status === 403) return { reason: "blocked", scope: "source", retry: "later" }
  if (status < 500) return malformed
  const later = status === 503 || status === 504 || retryAfterS !== null
  return { reason: "unavailable", scope: "source", retry: later ? "later" : "soon" }
}

const transportFailure = (source: SourceName, error: unknown) => {
  const code = transportCode(error)
  return failed(source, code === null ? broken : faultOfTransport(code), code, null)
}

/** Returns the error code of Node or undici. An error of undici's parser may have no code; its name is returned instead. */
const transportCode = (error: unknown): string | null => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "name") && error.name === notHttp ? notHttp : null
}

const notHttp = "HTTPParserError"

const contractErrors: ReadonlySet<string> = new Set([notHttp, "UND_ERR_HEADERS_OVERFLOW", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"])

const faultOfTransport = (code: string): Fault => {
  if (code === "ETIMEDOUT" || code.endsWith("_TIMEOUT")) return timedOut
  return contractErrors.has(code) || code.startsWith("HPE_") ? malformed : broken
}
