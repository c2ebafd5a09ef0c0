/** The introduction of the OpenAPI document, in Markdown: facts that concern all endpoints. */
import { tableOfMeanings } from "#http/openapi/ErrorMeanings.ts"

export const openApiIntroduction = `Validates EU VAT IDs against the official sources (VIES, and for German VAT IDs the BZSt) and keeps the proof.

## Authentication

- **API key**, header \`X-Api-Key\`: for validations, usage and receipts. \`POST /v1/register\` issues one at once; an account issues more.
- **Login**, header \`Authorization: Bearer\` with the token of \`POST /v1/auth/login\`: for the API keys and the receipts of an account.
- **Auditor's token**, in the same header: for the log. The operator issues it.

Without a key \`GET /v1/validate/{vat_id}\` works ten times in total, asks only VIES and gives no qualified confirmations. A wrong key, or a key
in another header or in the URL, is 401 and never ignored. The checkpoint and the tiles of the log are public.

## Errors

Every error has the body \`{"error": {"code", "message", "request_id"}}\`; decide by \`code\`, show \`message\` to people, and report \`request_id\` to support.

| status | action |
|---|---|
| 503 | Retry after \`Retry-After\` seconds. An outage says nothing about the VAT ID: never treat it as invalid |
| 429 | Retry after \`Retry-After\` seconds, not sooner |
| 500 | One retry may help |
| other 4xx | Do not retry: the same request gets the same response |

Every request can also get 405 (unsupported method; see \`Allow\`), 408 (the request did not arrive in time), 413 (body too large), 431 (path and
headers too large) or 500. Operations list these only if they have no other errors. All codes:

${tableOfMeanings}

## Limits and counting

| plan | validations per calendar month (UTC) | calls per minute |
|---|---|---|
| free | 100 | 10 |
| starter | 1,000 | 60 |
| business | 10,000 | 300 |
| enterprise | 100,000 | 1,000 |
| without a key | 10 in total | 10 |

The limits apply to each API key, without a key to each client address. An operator may set other limits. Every response to a valid key has
\`X-Service-Usage: <used>/<limit>\`. \`RateLimit\` and \`RateLimit-Policy\` describe the current minute.

- Counted: each verdict, from a source or from the cache, and each stale answer during an outage (see \`Warning\`).
- Not counted: a request that is refused before a source is asked, and a qualified confirmation that the BZSt refuses.
- \`503 SOURCE_UNAVAILABLE\` counts from the fourth time on that it occurs for one VAT ID within an hour.
- \`503 SERVICE_UNAVAILABLE\` is not counted, except if the database stored the charge and only its reply was lost, which is rare.
- A used-up month is 402 on the free plan and 429 on the others. Used-up validations without a key are 401.

The cache serves \`valid: true\` for 24 hours and \`valid: false\` for one hour. \`force_live\` always asks the source, and \`max_age\` limits the age of the answer.

## Conventions

- Bodies are JSON in UTF-8. Times are RFC 3339 in UTC. Numbers are plain digits. No path ends with a slash.
- Unknown query parameters are ignored, except filters of \`GET /v1/audit/events\` and names that resemble a known one: those are 400.
- Unknown fields of a body are ignored, except in \`POST /v1/validations\` and in the items of a batch: there they are 400.
- Responses may get more fields, and fields with an \`x-extensible-enum\` more values: ignore those that you do not know.
- Cursors are opaque.
- Every GET also supports HEAD, except a validation.
- If a response has several media types, \`Accept\` selects one; the first one is the default. \`Accept-Language\` selects English or German for pages and PDFs.
- The service keeps the \`X-Request-Id\` of your request, unless it is malformed or looks like a key or a token.
- A response with an \`ETag\` supports \`If-None-Match\`. Text of more than 1 KiB and streamed text are compressed for clients that send \`Accept-Encoding\` (br, gzip).
- Pages of other origins can call the service only if its operator allows them (\`CORS_ORIGINS\`).

## Versions

Paths start with the major version, \`/v1\`, except \`/health\`, which returns the version of this document. Within a major version fields, parameters, endpoints and error codes may be
added; the format of cursors may change at any time.

Before a removal or an incompatible change this document marks the operation \`deprecated\`. From then on its responses have \`Deprecation\`
(RFC 9745: when the deprecation began, as \`@1798761600\`), a \`Link\` with \`rel="deprecation"\` to the replacement, and \`Sunset\` (RFC 8594: when the operation ends), at
least twelve months later. A new major version begins under \`/v2\`; \`/v1\` then stays for at least twelve months. Nothing is deprecated now.`
