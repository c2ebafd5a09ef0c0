import { VatproofError } from "./errors.ts"
import { operations, type Error as ErrorBody, type Operations } from "./types.ts"

export interface Options {
  /** `https://vat.example.com`. */
  readonly baseUrl: string
  /** `svc_live_…`. */
  readonly apiKey?: string | undefined
  /** The token of a login, for the operations of an account. */
  readonly token?: string | undefined
  /** Further tries of one call. Default: 3. */
  readonly retries?: number | undefined
  /** Longest time of one try. Default: 40 s; the service answers within 35 s. */
  readonly tryTimeoutMs?: number | undefined
  /** Longest time of one call, with its retries and the waits between them. Default: 120 s. */
  readonly timeoutMs?: number | undefined
  readonly fetch?: typeof fetch | undefined
}

/** What each call accepts beside its input. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** Default: a fresh one. `false` sends none, so a lost response is not retried. */
  readonly idempotencyKey?: string | false | undefined
  /** RFC 7240: `respond-async`, `wait=10`. */
  readonly prefer?: string | undefined
}

/** A larger body is no answer of the service. */
const maxBodyBytes = 32 * 1024 * 1024

/** Longest wait between two tries without a `Retry-After`. */
const maxBackoffMs = 8_000

const printable = (name: string, text: string) => {
  // A header with another character fails with a message that quotes it.
  if (!/^[\x21-\x7e]{1,1000}$/u.test(text)) throw new TypeError(`${name} has a character that no header may have`)
  return text
}

/** Waits. Fails with the signal's reason if the signal ends the wait. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end)
      resolve()
    }, ms)
    if (signal?.aborted) end()
    else signal?.addEventListener("abort", end, { once: true })
  })

const read = async (response: Response): Promise<Uint8Array<ArrayBuffer>> => {
  const reader = response.body?.getReader()
  const chunks: Array<Uint8Array> = []
  let length = 0
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    length += part.value.length
    if (length > maxBodyBytes) {
      await reader?.cancel()
      throw unexpected(response, "The response is too large")
    }
    chunks.push(part.value)
  }
  const whole = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const secondsOf = (response: Response) => {
  const seconds = response.headers.get("retry-after")
  return seconds !== null && /^\d{1,9}$/u.test(seconds) ? Number(seconds) : undefined
}

const unexpected = (response: Response, message: string) =>
  new VatproofError({
    code: "UNEXPECTED_RESPONSE",
    status: response.status,
    message,
    retryAfterSeconds: secondsOf(response)
  })

const parse = <T>(response: Response, body: Uint8Array): T => {
  try {
    const value: T = JSON.parse(new TextDecoder().decode(body))
    if (typeof value === "object" && value !== null) return value
  } catch {
    // Another program answered: a proxy, a page.
  }
  throw unexpected(
    response,
    `HTTP ${response.status} without the service's JSON: check baseUrl and what is in front of the service`
  )
}

const refusal = (response: Response, body: Uint8Array) => {
  const { error } = parse<Partial<ErrorBody>>(response, body)
  if (typeof error?.code !== "string") return unexpected(response, `HTTP ${response.status} without an error of the service`)
  const { code, details, message, request_id: requestId } = error
  return new VatproofError({ code, details, message, requestId, status: response.status, retryAfterSeconds: secondsOf(response) })
}

/** Says why no response came, without the request, which may contain secrets. */
const failureOf = (error: unknown, timedOut: boolean) => {
  if (error instanceof VatproofError) return error
  if (timedOut) return new VatproofError({ code: "TIMEOUT", status: 0, message: "No response in time" })
  const cause: unknown = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? ` (${cause.code})` : ""
  return new VatproofError({ code: "UNREACHABLE", status: 0, message: `The connection failed${code}` })
}

/**
 * An outage of the sources is not retried: only three of them per VAT ID and hour are free, and a submission answers it later.
 * A lost response is retried only if the repetition is charged and executed once.
 */
const mayRetry = ({ code, retryable, status }: VatproofError, repeatable: boolean) =>
  retryable && code !== "SOURCE_UNAVAILABLE" && code !== "INTERNAL_ERROR" && (repeatable || status === 429)

export type Input<Id extends keyof Operations> = Operations[Id]["input"]

/** An input as every operation may have it. */
interface AnyInput {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
}

export interface Answer {
  readonly response: Response
  readonly body: Uint8Array<ArrayBuffer>
}

export type Send = (id: keyof Operations, input: AnyInput, accept: string, options?: CallOptions) => Promise<Answer>

export const makeTransport = (options: Options) => {
  const { baseUrl, retries = 3, timeoutMs = 120_000, tryTimeoutMs = 40_000 } = options
  if (!/^https?:\/\/[^\s@?#]+$/u.test(baseUrl)) throw new TypeError("baseUrl is no URL such as https://vat.example.com")
  const apiKey = options.apiKey === undefined ? undefined : printable("apiKey", options.apiKey)
  const token = options.token === undefined ? undefined : printable("token", options.token)
  const base = baseUrl.replace(/\/+$/u, "")

  const requestOf = (id: keyof Operations, input: AnyInput, accept: string, call: CallOptions) => {
    const [method, route, credential, idempotent] = operations[id]
    const path = route.replace(/\{(\w+)\}/gu, (_, name: string) => encodeURIComponent(input.path?.[name] ?? ""))
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(input.query ?? {})) if (value !== undefined) query.set(name, String(value))
    const headers: Record<string, string> = { accept, ...(call.prefer === undefined ? {} : { prefer: call.prefer }) }
    if (credential !== "none" && credential !== "token" && apiKey !== undefined) headers["x-api-key"] = apiKey
    else if (credential !== "none" && token !== undefined) headers["authorization"] = `Bearer ${token}`
    // Without a key the service refuses the header, except for a registration.
    if (idempotent && call.idempotencyKey !== false && (credential === "none" || apiKey !== undefined)) {
      headers["idempotency-key"] = printable("idempotencyKey", call.idempotencyKey ?? crypto.randomUUID())
    }
    const body = input.body === undefined ? (method === "POST" ? "{}" : null) : JSON.stringify(input.body)
    if (body !== null) headers["content-type"] = "application/json"
    return {
      url: `${base}${path}${query.size === 0 ? "" : `?${query.toString()}`}`,
      init: { method, headers, body, redirect: "manual" } satisfies RequestInit,
      repeatable: "idempotency-key" in headers || (method === "GET" && !idempotent)
    }
  }

  const attempt = async (url: string, init: RequestInit, ms: number, signal: AbortSignal | undefined): Promise<Answer> => {
    const control = new AbortController()
    const stop = () => control.abort()
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      stop()
    }, ms)
    signal?.addEventListener("abort", stop, { once: true })
    try {
      const response = await (options.fetch ?? fetch)(url, { ...init, signal: control.signal })
      const body = await read(response)
      if (!response.ok) throw refusal(response, body)
      return { response, body }
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      throw failureOf(error, timedOut)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener("abort", stop)
    }
  }

  const send: Send = async (id, input, accept, call = {}) => {
    const { init, repeatable, url } = requestOf(id, input, accept, call)
    const end = Date.now() + timeoutMs
    for (let tries = 0; ; tries += 1) {
      call.signal?.throwIfAborted()
      try {
        return await attempt(url, init, Math.min(tryTimeoutMs, end - Date.now()), call.signal)
      } catch (error) {
        if (!(error instanceof VatproofError) || tries >= retries || !mayRetry(error, repeatable)) throw error
        const backoffMs = Math.min(500 * 2 ** tries, maxBackoffMs) * (0.5 + Math.random() / 2)
        const waitMs = error.retryAfterSeconds === undefined ? backoffMs : error.retryAfterSeconds * 1000
        // The caller decides about a longer wait: the error has it.
        if (Date.now() + waitMs >= end) throw error
        await pause(waitMs, call.signal)
      }
    }
  }

  const json = async <T>(...call: Parameters<Send>) => {
    const { body, response } = await send(...call)
    return parse<T>(response, body)
  }

  return { send, json }
}
