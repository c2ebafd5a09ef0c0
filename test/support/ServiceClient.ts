/** An HTTP client for tests of a running service. It connects over a socket, like any client. */
import { Effect, Schema } from "effect"
import { HttpClient, HttpClientRequest, type HttpMethod } from "effect/http"

/** Options of a request. */
export interface Ask {
  readonly method?: HttpMethod.HttpMethod
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** An API key, for the header X-Api-Key. */
  readonly key?: string | undefined
  /** The client's address, for the header X-Forwarded-For of a trusted proxy. By default all clients have the same address. */
  readonly from?: string | undefined
  /** Sent as JSON. */
  readonly body?: unknown
}

/** A response. `body` is the parsed JSON, or the text; header names are in lower case. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly text: string
  readonly body: unknown
}

const parseJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))

const requestOf = (url: string, { body, from, headers = {}, key, method = "GET", query = {} }: Ask) => {
  const request = HttpClientRequest.make(method)(url).pipe(
    HttpClientRequest.setUrlParams(query),
    HttpClientRequest.setHeaders({
      ...(key === undefined ? {} : { "x-api-key": key }),
      ...(from === undefined ? {} : { "x-forwarded-for": from }),
      ...headers
    })
  )
  if (body === undefined) return request
  const type = headers["content-type"]
  return typeof body === "string" && type !== undefined
    ? HttpClientRequest.bodyText(request, body, type)
    : HttpClientRequest.bodyJsonUnsafe(request, body)
}

export const make = Effect.fnUntraced(function* (baseUrl: string) {
  const http = yield* HttpClient.HttpClient
  let clients = 0

  const answered = Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
    const response = yield* http.execute(request)
    const text = yield* response.text
    const body = parseJson(text)
    const reply: Reply = {
      status: response.status,
      headers: response.headers,
      text,
      body: body._tag === "Some" ? body.value : text
    }
    return reply
  })
  const ask = (path: string, more: Ask = {}) => answered(requestOf(baseUrl + path, more))

  return {
    baseUrl,
    ask,
    get: (path: string, more: Ask = {}) => ask(path, more),
    post: (path: string, body: unknown, more: Ask = {}) => ask(path, { ...more, method: "POST", body }),
    /** Sends a form, as a browser does. */
    sendForm: (path: string, fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) =>
      answered(
        HttpClientRequest.post(baseUrl + path).pipe(
          HttpClientRequest.setHeaders(headers),
          HttpClientRequest.bodyUrlParams(fields)
        )
      ),
    validate: (vatId: string, more: Ask = {}) => ask(`/v1/validate/${encodeURIComponent(vatId)}`, more),
    /** A fresh API key of a free account. */
    newKey: Effect.suspend(() => {
      clients += 1
      return ask("/v1/register", { method: "POST", body: { agent_id: `test ${clients}` } })
    }).pipe(
      Effect.flatMap(({ body }) => decodeKey(body)),
      Effect.map(({ api_key }) => api_key)
    )
  }
})

export type ServiceClient = Effect.Success<ReturnType<typeof make>>
