import { Effect, Redacted } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import { usualLinkDays } from "#domain/receipts/ReceiptLink.ts"
import { ReceiptLinks } from "#domain/receipts/ReceiptLinks.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentReceiptReader } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import * as Negotiation from "#http/wire/Negotiation.ts"
import { receiptLinkPage } from "#http/receipts/ReceiptLinkPage.ts"
import { openPath } from "#http/receipts/ReceiptLinksApi.ts"
import * as ReceiptRepresentations from "#http/receipts/ReceiptRepresentations.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"

/** Headers that keep the URL, which contains a secret, out of referrers and search engines. */
const secluded = { "x-robots-tag": "noindex", "referrer-policy": "no-referrer" }

/** URL of the PDF. It is relative, so that it works behind a proxy that adds a path prefix. */
const pdfUrl = "?format=pdf"

const typeOfFormat = { html: "text/html", pdf: "application/pdf" } as const

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "receiptLinks",
  Effect.fnUntraced(function* (handlers) {
    const links = yield* ReceiptLinks
    const site = yield* Site
    const { sha256Hex } = yield* Crypto
    const { show } = yield* ReceiptRepresentations.make
    const erased = yield* ReceiptRepresentations.makeErased

    const problemOf = (failure: FailureResponses.Failure) =>
      failure._tag === "ReceiptErased"
        ? Effect.catchTag(erased(failure), "StoreUnavailable", FailureResponses.problemOf)
        : FailureResponses.problemOf(failure)
    const respondErased = (failure: Parameters<typeof erased>[0]) => Effect.flatMap(erased(failure), Errors.toResponse)

    return handlers.handleAll({
      create: Effect.fnUntraced(function* ({ params, payload }) {
        const { ownerId } = yield* CurrentReceiptReader
        const validity = { days: payload?.expires_in_days ?? usualLinkDays, endsWithKey: payload?.until === "key" }
        return yield* links.create(ownerId, ReceiptId.normalize(params.receipt_id), validity).pipe(
          Effect.map(({ expiresAt, linkId, token }) => ({
            link_id: linkId,
            url: `${site.publicUrl}${openPath}/${Redacted.value(token)}`,
            expires_at: expiresAt
          })),
          Effect.catchTag("ReceiptErased", respondErased)
        )
      }, FailureResponses.respond),
      list: Effect.fnUntraced(function* ({ params }) {
        const { ownerId } = yield* CurrentReceiptReader
        const listed = yield* links.list(ownerId, ReceiptId.normalize(params.receipt_id))
        return {
          data: listed.map(({ by, createdAt, endsWithKey, expiresAt, isRevoked, linkId }) => ({
            link_id: linkId,
            created_at: createdAt,
            created_by: by,
            expires_at: expiresAt,
            ...(endsWithKey ? ({ until: "key" } as const) : {}),
            revoked: isRevoked
          }))
        }
      }, FailureResponses.respond),
      revoke: Effect.fnUntraced(function* ({ params }) {
        const { ownerId } = yield* CurrentReceiptReader
        yield* links.revoke(ownerId, ReceiptId.normalize(params.receipt_id), params.link_id)
        return { message: `The link ${params.link_id} is now revoked` }
      }, FailureResponses.respond),
      open: Effect.fnUntraced(function* ({ headers, params, query }) {
        const { format } = query
        const mediaType = format === undefined ? ReceiptRepresentations.linkedTypeOf(headers) : typeOfFormat[format]
        const shown = Effect.gen(function* () {
          const record = yield* links.open(Redacted.make(params.token))
          // All links of an account share one limit of concurrent PDFs. Requests with an API key count towards the key's own limit
          // instead.
          return yield* show(record.accountId, record, headers, { mediaType, pdfUrl })
        })
        const refused = Effect.fnUntraced(function* (problem: Errors.Problem) {
          if (!Negotiation.prefersPage(headers.accept)) return yield* Errors.toResponse(problem)
          const { requestId } = yield* RequestContext
          const language = ReceiptRepresentations.languageOf(headers)
          return receiptLinkPage({ language, problem, requestId }, sha256Hex)
        })
        const response = yield* Effect.matchEffect(shown, {
          onSuccess: (page) => Effect.succeed(page),
          onFailure: (failure) => Effect.flatMap(problemOf(failure), refused)
        })
        return HttpServerResponse.setHeaders(response, secluded)
      })
    })
  })
)
