/** What the OpenAPI document and its page begin with: what is the same for all endpoints. Markdown. */
import { tableOfMeanings } from "#http/openapi/ErrorMeanings.ts"

export const openApiIntroduction = `Validates EU VAT IDs against the official sources (VIES, and for German VAT IDs the BZSt) and keeps the proof.

## Authentication

- **API key**, header \`X-Api-Key\`: validations, usage and receipts. \`POST /v1/register\` gives one at once; accounts issue more.
- **Login**, header \`Authorization: Bearer\`, with the token of \`POST /v1/auth/login\`: the API keys of an account.
- **Auditor's token**, in the same header: the log. The operator gives it out.

\`GET /v1/validate/{vat_id}\` works without a key as well, ten times for good, but not for qualified confirmations, and VIES only. A key that is sent
and wrong, or sent in another header or in the URL, is refused with 401, never passed over. Checkpoint and tiles of the log are public.

## Errors

Every error has the body \`{"error": {"code", "message", "request_id"}}\`; decide by \`code\`, show \`message\` to people, and name \`request_id\` to support.

| status | what to do |
|---|---|
| 503 | Ask again after \`Retry-After\` seconds. An outage says nothing about the VAT ID: never read it as invalid |
| 429 | Wait for \`Retry-After\` seconds; asking sooner is refused again |
| 500 | Asking once more may help |
| other 4xx | Do not ask again: the same request gets the same answer |

Any request may be refused with 405 (another method; \`Allow\` names those there are), 408 (it did not arrive in time), 413 or 431 (the body, or the path with
the headers, are too large) or 500. They are listed at operations only where nothing else can be wrong. All codes:

${tableOfMeanings}

## Limits, and what is counted

Per calendar month (UTC) and API key, and per minute: free 100 and 10, starter 1,000 and 60, business 10,000 and 300, enterprise 100,000 and 1,000; without a
key 10 for good and 10 a minute per client address. An operator may set other limits. \`X-Service-Usage\` tells \`<used>/<limit>\` to callers who are known,
\`RateLimit\` and \`RateLimit-Policy\` tell how the minute stands.

- Counted: each verdict, from a source or from the cache, also an older one that is served because no source can be asked (\`Warning\`).
- Not counted: requests that are refused before a source is asked, a refused qualified confirmation, and \`503 SOURCE_UNAVAILABLE\`, up to three times an hour
  for one VAT ID; from the fourth on it is counted. After \`503 SERVICE_UNAVAILABLE\` a verdict may rarely have been counted: where the answer of the database was lost.
- Full month: 402 on the free plan, 429 on the others, 401 without a key.

A verdict is served from the cache for 24 hours, one hour if it is \`valid: false\`. \`force_live\` asks the source in any case.

## Conventions

Bodies are JSON in UTF-8; times are RFC 3339 in UTC. Numbers are written in digits alone, and no path ends with a slash. Unknown query parameters and fields are ignored. Responses may get more fields, and
fields with an \`x-extensible-enum\` more values: do not refuse those you do not know. Cursors are opaque. Wherever there is a GET there is a HEAD. Where a response has several media types, \`Accept\` chooses, and the first
one is what you get without it; where it is a page or a PDF, \`Accept-Language\` chooses between English and German. \`X-Request-Id\` is kept if you send a usable one, which does not look like
a key or a token. A response with an \`ETag\` may be asked for with \`If-None-Match\`. Text of more than 1 KiB is compressed for clients that send \`Accept-Encoding\` (br, gzip).
Pages of other origins may call the service only where its operator has named them (\`CORS_ORIGINS\`).

## Versions

The paths have the major version, \`/v1\`, except \`/health\`, which tells the version of this document. Fields, parameters, endpoints and error codes may be added
within it; the format of cursors may change at any time.

What will be removed or will change incompatibly is marked \`deprecated\` in this document first. From then on its responses have the header \`Deprecation\`
(RFC 9745: since when, as \`@1798761600\`), a \`Link\` with \`rel="deprecation"\` that says what to use instead, and \`Sunset\` (RFC 8594: until when it works), at
least twelve months later. A new major version begins under \`/v2\`; \`/v1\` then stays for at least twelve months. Nothing is deprecated now.`
