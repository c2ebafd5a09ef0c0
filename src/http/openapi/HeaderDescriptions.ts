/** The response headers in the OpenAPI document: their descriptions, and the responses that have them. */
import type { OpenApi } from "effect/http-api"

const text = { type: "string" }

/** `required` headers are in every response that refers to them. */
export const headerDescriptions = {
  "X-Request-Id": {
    description:
      "The id of the request: your own if it is usable (1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `-`, not like a key or a token). Name it to support",
    required: true,
    schema: text,
    example: "01a20419-04ae-76a0-8ca8-7e1e53bc6219"
  },
  "X-Trace-Id": {
    description: "The trace of the request (W3C Trace Context), if the service traces it",
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
    example: "4692b8bd76e0608681818f638701d2e0"
  },
  "X-Content-Type-Options": {
    description: "Forbids content sniffing",
    required: true,
    schema: { type: "string", const: "nosniff" }
  },
  "Cache-Control": { description: "Caching of the response", required: true, schema: text, example: "no-store" },
  "X-Service-Usage": {
    description: "`<used>/<limit>`: the usage of the month, or, without a key, the total usage. Sent to every identified caller",
    schema: { type: "string", pattern: String.raw`^\d+/\d+$` },
    example: "81/100"
  },
  "X-Service-Upgrade": {
    description: "Link to larger plans, above 80 % of the limit",
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
  "WWW-Authenticate": { description: "The scheme to authenticate with", schema: text, example: "Bearer" },
  Warning: {
    description:
      "`110`: the answer is stale, because no source answers; `source_timestamp` shows its age. " +
      "`199`: company data was sent without `company_name` or `company_city`, so nothing was compared",
    schema: text,
    example: '110 - "Response is Stale"'
  },
  Link: {
    description: "Links to the description of this interface (RFC 8631); on every response except validations",
    schema: text,
    example: '</openapi.json>; rel="service-desc", </docs>; rel="service-doc"'
  },
  ETag: {
    description: "Send it as `If-None-Match`: the response is 304 if nothing has changed",
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
    description: "File name for saving",
    schema: text,
    example: 'inline; filename="VP-QC-20261120-A7K2M9P4R3.pdf"'
  },
  "Content-Security-Policy": { description: "Content that the page may load: nothing from other hosts", schema: text },
  "Referrer-Policy": { description: "Referrer that the page sends", schema: text, example: "no-referrer" },
  Location: {
    description: "Path of the validation",
    schema: text,
    example: "/v1/validations/01a20419-04ae-76a0-8ca8-7e1e53bc6219"
  },
  "Preference-Applied": {
    description: "Preferences of the request that were applied (RFC 7240)",
    schema: text,
    example: "respond-async, wait=10"
  },
  "Idempotent-Replayed": {
    description: "`true`: the same request with the same `Idempotency-Key` came before, and this is its answer",
    schema: text,
    example: "true"
  },
  "X-Robots-Tag": { description: "Keeps a link out of search engines", schema: text, example: "noindex" }
} as const

type HeaderName = keyof typeof headerDescriptions
type Names = ReadonlyArray<HeaderName>

const always: Names = ["X-Request-Id", "X-Trace-Id", "X-Content-Type-Options", "Cache-Control", "Link", "Vary"]

const page: Names = ["Content-Language", "Content-Security-Policy", "Referrer-Policy"]
const linked: Names = [...page, "X-Robots-Tag"]

/** Headers of single operations, by status, beyond the rules below. */
const ofOperations: Readonly<Record<string, Readonly<Record<string, Names>>>> = {
  validateVatId: { 200: ["Warning", "Idempotent-Replayed"], 409: ["Retry-After"] },
  registerAgent: { 201: ["Idempotent-Replayed"], 409: ["Retry-After"] },
  submitValidation: {
    200: ["Warning", "Preference-Applied", "Idempotent-Replayed"],
    202: ["Location", "Retry-After", "Preference-Applied", "Idempotent-Replayed"],
    409: ["Retry-After"]
  },
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

const namesFor = ({ operationId, security }: OpenApi.OpenAPISpecOperation, status: number): Names => {
  const schemes = security.flatMap((requirement) => Object.keys(requirement))
  // If the key is optional, callers without one have a meter too, and their calls per minute are counted.
  const keyIsOptional = security.some((requirement) => Object.keys(requirement).length === 0)
  const isMetered = schemes.includes("apiKey") && (keyIsOptional || status !== 401)
  const takesToken = schemes.some((scheme) => scheme !== "apiKey")
  const usage: Names = isMetered ? ["X-Service-Usage", "X-Service-Upgrade"] : []
  const minute: Names = keyIsOptional || operationId === "submitValidation" ? ["RateLimit-Policy", "RateLimit"] : []
  const wait: Names = status === 429 || status === 503 ? ["Retry-After"] : []
  const challenge: Names = status === 401 && takesToken ? ["WWW-Authenticate"] : []
  const coding: Names = status === 200 ? ["Content-Encoding"] : []
  return [...always, ...coding, ...usage, ...minute, ...wait, ...challenge, ...(ofOperations[operationId]?.[status] ?? [])]
}

/** Returns true if the operation supports If-None-Match and 304. */
export const hasEntityTag = ({ operationId }: OpenApi.OpenAPISpecOperation): boolean =>
  ofOperations[operationId]?.[200]?.includes("ETag") === true

/** The headers of a response, as references to the document's components. */
export const headersFor = (operation: OpenApi.OpenAPISpecOperation, status: number) =>
  Object.fromEntries(namesFor(operation, status).map((name) => [name, { $ref: `#/components/headers/${name}` }]))
