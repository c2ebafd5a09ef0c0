/** The introduction of the OpenAPI document: facts about all endpoints, as Markdown. */
import { tableOfMeanings } from "#http/openapi/ErrorMeanings.ts"

export const openApiIntroduction = `Validates EU VAT IDs against the official sources (VIES, and for German VAT IDs the BZSt) and keeps the proof.

## Authentication

- **API key**, header \`X-Api-Key\`: validations, usage and receipts. \`POST /v1/register\` issues one at once; accounts issue more.
- **Login**, header \`Authorization: Bearer\`, with the token of \`POST /v1/auth/login\`: the API keys of an account.
- **Auditor's token**, in the same header: the log. The operator issues it.

\`GET /v1/validate/{vat_id}\` works without a key ten times in total, with VIES only and without qualified confirmations. A wrong key, or a key
in another header or in the URL, is 401 and never ignored. Checkpoint and tiles of the log are public.

## Errors

Every error has the body \`{"error": {"code", "message", "request_id"}}\`; decide by \`code\`, show \`message\` to people, and report \`request_id\` to support.

| status | action |
|---|---|
| 503 | Retry after \`Retry-After\` seconds. An outage says nothing about the VAT ID: never treat it as invalid |
| 429 | Retry after \`Retry-After\` seconds, not sooner |
| 500 | One retry may help |
| other 4xx | Do not retry: the same request gets the same response |

Every request can be refused with 405 (unsupported method; see \`Allow\`), 408 (incomplete in time), 413 or 431 (body, or path and
headers, too large) or 500. Operations list these only if they have no other errors. All codes:

${tableOfMeanings}

## Limits and counting

Per calendar month (UTC) and API key, and per minute: free 100 and 10, starter 1,000 and 60, business 10,000 and 300, enterprise 100,000 and 1,000; without a
key 10 in total and 10 a minute per client address. An operator may set other limits. \`X-Service-Usage: <used>/<limit>\` is sent to every identified caller,
\`RateLimit\` and \`RateLimit-Policy\` describe the current minute.

- Counted: each verdict, from a source or from the cache, also a stale one during an outage (\`Warning\`).
- Not counted: requests that are refused before a source is asked, a refused qualified confirmation, and \`503 SOURCE_UNAVAILABLE\`, up to three times an hour
  for one VAT ID; the fourth and later ones count. \`503 SERVICE_UNAVAILABLE\` rarely counts, if the answer of the database was lost.
- Used-up month: 402 on the free plan, 429 on the others. Used-up validations without a key: 401.

The cache serves a verdict for 24 hours, \`valid: false\` for one hour. \`force_live\` always asks the source.

## Conventions

Bodies are JSON in UTF-8; times are RFC 3339 in UTC. Numbers are plain digits, and no path ends with a slash. Unknown query parameters and fields are ignored. Responses may get more fields, and
fields with an \`x-extensible-enum\` more values: ignore unknown ones. Cursors are opaque. Every GET also supports HEAD, except a validation. If a response has several media types, \`Accept\` selects one; the first
one is the default. \`Accept-Language\` selects English or German for pages and PDFs. A usable \`X-Request-Id\` of yours, which does not look like
a key or a token, is kept. A response with an \`ETag\` supports \`If-None-Match\`. Text of more than 1 KiB is compressed for clients that send \`Accept-Encoding\` (br, gzip).
Pages of other origins can call the service only if its operator allows them (\`CORS_ORIGINS\`).

## Versions

Paths start with the major version, \`/v1\`, except \`/health\`, which returns the version of this document. Within a major version fields, parameters, endpoints and error codes may be
added; the format of cursors may change at any time.

Before a removal or an incompatible change this document marks the operation \`deprecated\`. From then on its responses carry \`Deprecation\`
(RFC 9745: the start, as \`@1798761600\`), a \`Link\` with \`rel="deprecation"\` to the replacement, and \`Sunset\` (RFC 8594: the end), at
least twelve months later. A new major version begins under \`/v2\`; \`/v1\` then stays for at least twelve months. Nothing is deprecated now.`
