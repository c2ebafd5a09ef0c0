/** Serves the documentation of the interface: the OpenAPI document, the page /docs, and the text for agents. */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { OpenApi } from "effect/http-api"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { Api, serversAt } from "#http/Api.ts"
import { docsPage } from "#http/site/DocsPage.ts"
import { llmsText } from "#http/site/LlmsText.ts"
import { operator } from "#http/openapi/OpenApiDocument.ts"
import * as Page from "#http/site/Page.ts"
import { basePath, documentPaths, Site, type SiteSettings } from "#http/pipeline/SiteSettings.ts"
import { cacheable } from "#http/site/SitePages.ts"

/** Returns the OpenAPI document with the base path of this service and the address of its operator. */
const documentOf = (site: SiteSettings) => {
  const document = OpenApi.fromApi(Api.annotate(OpenApi.Servers, serversAt(basePath(site) || "/")))
  const { contact } = site
  if (contact === null) return document
  const address = contact.startsWith("mailto:") ? { email: contact.slice("mailto:".length) } : { url: contact }
  return { ...document, info: { ...document.info, contact: { ...operator, ...address } } }
}

/** Creates each document on its first request, and caches it. */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const site = yield* Site
    const plans = yield* Plans
    const { sha256Hex } = yield* Crypto
    const document = yield* Effect.cached(Effect.sync(() => documentOf(site)))
    const text = (content: string) =>
      HttpServerResponse.text(content, { contentType: "text/plain; charset=utf-8", headers: cacheable })

    const routes = [
      [documentPaths.openApi, Effect.map(document, (body) => HttpServerResponse.jsonUnsafe(body, { headers: cacheable }))],
      [documentPaths.docs, Effect.map(docsPage(site, sha256Hex), (page) => Page.respond(page, cacheable))],
      [documentPaths.llms, Effect.map(document, (read) => text(llmsText(site, read, plans)))]
    ] as const
    for (const [path, response] of routes) yield* router.add("GET", path, yield* Effect.cached(response))
  })
)
