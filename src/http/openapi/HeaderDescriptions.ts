/** The headers of responses, for the OpenAPI document: what each says, and which responses have it. */
import type { OpenApi } from "effect/http-api"

const text = { type: "string" }

/** `required` are those that every response has that refers to them. */
export const headerDescriptions = {
  "X-Request-Id": {
    description:
      "The request's id, yours if you sent a usable one (1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `-`, and nothing that looks like a key or a token). Name it to support",
    required: true,
    schema: text,
    example: "01a20419-04ae-76a0-8ca8-7e1e53bc6219"
  },
  "X-Trace-Id": {
    description: "The request's trace (W3C Trace Context), where the service traces",
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
    example: "4692b8bd76e0608681818f638701d2e0"
  },
  "X-Content-Type-Options": {
    description: "The body is what Content-Type says",
    required: true,
    schema: { type: "string", const: "nosniff" }
  },
  "Cache-Control": { description: "Who may keep the response", required: true, schema: text, example: "no-store" },
  "X-Service-Usage": {
    description:
      "`<used>/<limit>`: what the caller has used up of the month, or, without a key, for good. Where the caller is known",
    schema: { type: "string", pattern: String.raw`^\d+/\d+$` },
    example: "81/100"
  },
  "X-Service-Upgrade": {
    description: "Where to get a larger plan; sent when more than 80 % of the limit is used up",
    schema: { type: "string", format: "uri-reference" },
    example: "https://vatproof.example/upgrade"
  },
  "RateLimit-Policy": {
    description: "The calls (`q`) that the caller has in a window of `w` seconds (draft-ietf-httpapi-ratelimit-headers-10)",
    schema: text,
    example: '"minute";q=10;w=60'
  },
  RateLimit: {
    description: "The calls that remain (`r`) in the window, and the seconds until it ends (`t`)",
    schema: text,
    example: '"minute";r=9;t=42'
  },
  "Retry-After": {
    description: "Seconds after which to ask again",
    schema: { type: "integer", minimum: 0 },
    example: 2
  },
  "WWW-Authenticate": { description: "The scheme to authenticate with", schema: text, example: "Bearer" },
  Warning: {
    description:
      "`110`: the answer is older than the cache gives out, because no source can be asked now; `source_timestamp` says how old it is. " +
      "`199`: company data was sent without `company_name` or `company_city`, so nothing was compared",
    schema: text,
    example: '110 - "Response is Stale"'
  },
  Link: {
    description: "Where this interface is described (RFC 8631); on every response but the answer of a validation",
    schema: text,
    example: '</openapi.json>; rel="service-desc", </docs>; rel="service-doc"'
  },
  ETag: {
    description: "Send it as `If-None-Match` to be spared what you have already: the answer is 304 then",
    schema: text,
    example: '"5f0e1c7a9d3b48e2a6c4f1b07d925e83"'
  },
  "Content-Encoding": {
    description: "How text of more than 1 KiB is compressed for a client that sends `Accept-Encoding`",
    schema: { type: "string", enum: ["br", "gzip"] },
    example: "br"
  },
  Vary: { description: "The request's headers that the response depends on", schema: text, example: "Accept, Accept-Language" },
  "Content-Language": { description: "The language of a page or a PDF", schema: text, example: "de" },
  "Content-Disposition": {
    description: "The name to save a file under",
    schema: text,
    example: 'inline; filename="VP-QC-20261120-A7K2M9P4R3.pdf"'
  },
  "Content-Security-Policy": { description: "What a page may load: nothing from elsewhere", schema: text },
  "Referrer-Policy": { description: "What a page tells others of its address", schema: text, example: "no-referrer" },
  "X-Robots-Tag": { description: "Keeps a link out of search engines", schema: text, example: "noindex" }
} as const

type HeaderName = keyof typeof headerDescriptions
type Names = ReadonlyArray<HeaderName>

const always: Names = ["X-Request-Id", "X-Trace-Id", "X-Content-Type-Options", "Cache-Control", "Link", "Vary"]

const page: Names = ["Content-Language", "Content-Security-Policy", "Referrer-Policy"]
const linked: Names = [...page, "X-Robots-Tag"]

/** What no rule below gives: headers of one operation, by status. */
const ofOperations: Readonly<Record<string, Readonly<Record<string, Names>>>> = {
  validateVatId: { 200: ["Warning"] },
  getQualifiedConfirmation: { 200: [...page, "Content-Disposition", "ETag"] },
  openReceiptLink: {
    200: [...linked, "Content-Disposition", "ETag"],
    404: linked,
    410: linked,
    429: linked,
    503: linked
  },
  getCheckpoint: { 200: ["ETag"] },
  getTile: { 200: ["ETag"] },
  getPartialTile: { 200: ["ETag"] },
  verifyEmailByLink: { 200: page, 400: page, 503: page },
  verifyEmail: { 200: page, 400: page, 503: page },
  getAuditProof: { 200: ["Content-Disposition"] }
}

const namesFor = ({ operationId, security }: OpenApi.OpenAPISpecOperation, status: number): Names => {
  const schemes = security.flatMap((requirement) => Object.keys(requirement))
  // Where the key is optional, callers without one have a meter too, and the calls of a minute are counted.
  const keyIsOptional = security.some((requirement) => Object.keys(requirement).length === 0)
  const isMetered = schemes.includes("apiKey") && (keyIsOptional || status !== 401)
  const takesToken = schemes.some((scheme) => scheme !== "apiKey")
  const usage: Names = isMetered ? ["X-Service-Usage", "X-Service-Upgrade"] : []
  const minute: Names = keyIsOptional ? ["RateLimit-Policy", "RateLimit"] : []
  const wait: Names = status === 429 || status === 503 ? ["Retry-After"] : []
  const challenge: Names = status === 401 && takesToken ? ["WWW-Authenticate"] : []
  const coding: Names = status === 200 ? ["Content-Encoding"] : []
  return [...always, ...coding, ...usage, ...minute, ...wait, ...challenge, ...(ofOperations[operationId]?.[status] ?? [])]
}

/** Whether a client that sends the tag of what it has may get 304. */
export const hasEntityTag = ({ operationId }: OpenApi.OpenAPISpecOperation): boolean =>
  ofOperations[operationId]?.[200]?.includes("ETag") === true

/** The headers of a response, as references to the document's components. */
export const headersFor = (operation: OpenApi.OpenAPISpecOperation, status: number) =>
  Object.fromEntries(namesFor(operation, status).map((name) => [name, { $ref: `#/components/headers/${name}` }]))
