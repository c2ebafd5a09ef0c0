/** Describes the response headers in the OpenAPI document, and lists the headers of each response. */
import type { OpenApi } from "effect/http-api"

const text = { type: "string" }

/**
 * The description of each response header. If a header is `required`, every response for which the document lists the header has it.
 */
export const headerDescriptions = {
  "X-Request-Id": {
    description:
      "Id of the request, to report to support. The service keeps the `X-Request-Id` of your request if it has 1 to 128 of the characters A-Z, a-z, 0-9, `.`, `_` and `-` and contains no key or token",
    required: true,
    schema: text,
    example: "01a20419-04ae-76a0-8ca8-7e1e53bc6219"
  },
  "X-Trace-Id": {
    description: "Trace id of the request (W3C Trace Context), if the service traces it",
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
    example: "4692b8bd76e0608681818f638701d2e0"
  },
  "X-Content-Type-Options": {
    description: "Forbids content sniffing",
    required: true,
    schema: { type: "string", const: "nosniff" }
  },
  "Cache-Control": {
    description: "Whether and for how long the response may be cached",
    required: true,
    schema: text,
    example: "no-store"
  },
  "X-Service-Usage": {
    description:
      "`<used>/<limit>`: the validations of the API key in this month, or, without a key, of the client address in total. Every response to a valid key has it",
    schema: { type: "string", pattern: String.raw`^\d+/\d+$` },
    example: "81/100"
  },
  "X-Service-Upgrade": {
    description: "Link to larger plans; sent when more than 80 % of the limit are used",
    schema: { type: "string", format: "uri-reference" },
    example: "https://vatproof.example/upgrade"
  },
  "RateLimit-Policy": {
    description: "Limit of calls (`q`) in a window of `w` seconds (draft-ietf-httpapi-ratelimit-headers-10)",
    schema: text,
    example: '"minute";q=10;w=60'
  },
  RateLimit: {
    description: "Remaining calls (`r`) in the window, and seconds until it ends (`t`)",
    schema: text,
    example: '"minute";r=9;t=42'
  },
  "Retry-After": {
    description: "Seconds to wait before a retry",
    schema: { type: "integer", minimum: 0 },
    example: 2
  },
  "WWW-Authenticate": { description: "Authentication scheme of the endpoint", schema: text, example: "Bearer" },
  Warning: {
    description:
      "`110`: the answer is stale, because no source answers; `source_timestamp` shows its age. " +
      "`199`: company data was sent without `company_name` or `company_city`, so nothing was compared",
    schema: text,
    example: '110 - "Response is Stale"'
  },
  Link: {
    description: "Links to the description of this interface (RFC 8631); on every response except successful validations",
    schema: text,
    example: '</openapi.json>; rel="service-desc", </docs>; rel="service-doc"'
  },
  ETag: {
    description: "Version of the response. Send it as `If-None-Match`: the response is 304 if nothing has changed",
    schema: text,
    example: '"5f0e1c7a9d3b48e2a6c4f1b07d925e83"'
  },
  "Content-Encoding": {
    description: "Compression of text of more than 1 KiB for a client that sends `Accept-Encoding`",
    schema: { type: "string", enum: ["br", "gzip"] },
    example: "br"
  },
  Vary: { description: "Request headers that the response depends on", schema: text, example: "Accept, Accept-Language" },
  "Content-Language": { description: "The language of a page or a PDF", schema: text, example: "de" },
  "Content-Disposition": {
    description: "Suggested file name",
    schema: text,
    example: 'inline; filename="VP-QC-20261120-A7K2M9P4R3.pdf"'
  },
  "Content-Security-Policy": { description: "Content that the page may load: nothing from other hosts", schema: text },
  "Referrer-Policy": {
    description: "Referrer that browsers send when a link of the page is opened",
    schema: text,
    example: "no-referrer"
  },
  Location: {
    description: "Path of the validation or batch",
    schema: text,
    example: "/v1/validations/01a20419-04ae-76a0-8ca8-7e1e53bc6219"
  },
  "Preference-Applied": {
    description: "Preferences of the request that were applied (RFC 7240)",
    schema: text,
    example: "respond-async, wait=10"
  },
  "Idempotent-Replayed": {
    description: "`true`: this is the answer to an earlier, equal request with the same `Idempotency-Key`",
    schema: text,
    example: "true"
  },
  "X-Robots-Tag": { description: "Tells search engines not to list the page", schema: text, example: "noindex" }
} as const

type HeaderName = keyof typeof headerDescriptions
type Names = ReadonlyArray<HeaderName>

/** Headers that every response may have. */
const always: Names = ["X-Request-Id", "X-Trace-Id", "X-Content-Type-Options", "Cache-Control", "Link", "Vary"]

/** Headers of HTML pages. */
const page: Names = ["Content-Language", "Content-Security-Policy", "Referrer-Policy"]
/** Headers of receipts that are opened by a link. */
const linked: Names = [...page, "X-Robots-Tag"]

/** Further headers of single operations, by operation id and status. `namesFor` adds the headers that follow from status and authentication. */
const ofOperations: Readonly<Record<string, Readonly<Record<string, Names>>>> = {
  validateVatId: { 200: ["Warning", "Idempotent-Replayed"], 409: ["Retry-After"] },
  registerAgent: { 201: ["Idempotent-Replayed"], 409: ["Retry-After"] },
  submitValidation: {
    200: ["Warning", "Preference-Applied", "Idempotent-Replayed"],
    202: ["Location", "Retry-After", "Preference-Applied", "Idempotent-Replayed"],
    409: ["Retry-After"]
  },
  submitBatch: { 202: ["Location", "Preference-Applied", "Idempotent-Replayed"], 409: ["Retry-After"] },
  getValidation: { 200: ["Warning", "Location", "Retry-After"] },
  cancelValidation: { 200: ["Warning"] },
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

/** Ids of the operations that need a key and count towards its limit of calls per minute. */
const countsCalls: ReadonlySet<string> = new Set(["submitValidation", "submitBatch"])

const namesFor = ({ operationId, security }: OpenApi.OpenAPISpecOperation, status: number): Names => {
  const schemes = security.flatMap((requirement) => Object.keys(requirement))
  // If the API key is optional, callers without a key have a usage and a limit per minute too. Their responses therefore have the same
  // headers.
  const keyIsOptional = security.some((requirement) => Object.keys(requirement).length === 0)
  // Every response to a valid key has its usage, also if the operation needs no key.
  const isMetered = !schemes.includes("apiKey") || keyIsOptional || status !== 401
  const takesToken = schemes.some((scheme) => scheme !== "apiKey")
  const usage: Names = isMetered ? ["X-Service-Usage", "X-Service-Upgrade"] : []
  const minute: Names = keyIsOptional || countsCalls.has(operationId) ? ["RateLimit-Policy", "RateLimit"] : []
  const wait: Names = status === 429 || status === 503 ? ["Retry-After"] : []
  const challenge: Names = status === 401 && takesToken ? ["WWW-Authenticate"] : []
  const coding: Names = status === 200 ? ["Content-Encoding"] : []
  const tag: Names = status === 304 ? ["ETag"] : []
  return [
    ...always,
    ...coding,
    ...tag,
    ...usage,
    ...minute,
    ...wait,
    ...challenge,
    ...(ofOperations[operationId]?.[status] ?? [])
  ]
}

/** Returns true if the operation supports If-None-Match and 304. */
export const hasEntityTag = ({ operationId }: OpenApi.OpenAPISpecOperation): boolean =>
  ofOperations[operationId]?.[200]?.includes("ETag") === true

/** Returns the headers of a response, as references to the components of the document. */
export const headersFor = (operation: OpenApi.OpenAPISpecOperation, status: number) =>
  Object.fromEntries(namesFor(operation, status).map((name) => [name, { $ref: `#/components/headers/${name}` }]))
