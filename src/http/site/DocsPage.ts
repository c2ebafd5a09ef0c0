/** The page at `/docs`: Swagger UI of the library, which reads the OpenAPI document of this service and has a form for each call. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApi, HttpApiSwagger } from "effect/http-api"
import type { Sha256 } from "#http/site/Page.ts"
import { sitePage } from "#http/site/SitePage.ts"
import { basePath, documentPaths, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

/** Returns the style and the script of Swagger UI. The library exports them only in its own page, here the page of an empty interface. */
const swaggerUi = Effect.gen(function* () {
  const router = yield* HttpRouter.make
  yield* Layer.build(HttpApiSwagger.layer(HttpApi.make("empty"))).pipe(Effect.provideService(HttpRouter.HttpRouter, router))
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/docs"))
  const { body } = yield* router.asHttpEffect().pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, request))
  const html = body._tag === "Uint8Array" ? (body.text ?? "") : ""
  const between = (start: string, end: string) => html.slice(html.indexOf(start) + start.length, html.lastIndexOf(end))
  return { style: between("<style>", "</style>"), script: between("<script>", "window.onload") }
}).pipe(Effect.scoped)

/** Shows the OpenAPI document. Examples of optional parameters are removed, because Swagger UI would send them. */
const start = `
fetch(document.getElementById("document").href).then((response) => response.json()).then((spec) => {
  for (const { parameters } of Object.values(spec.paths).flatMap(Object.values))
    for (const parameter of parameters) if (!parameter.required) delete parameter.example
  SwaggerUIBundle({ spec, dom_id: "#application", deepLinking: true, filter: true, requestSnippetsEnabled: true })
})
`

export const docsPage = (site: SiteSettings, sha256Hex: Sha256) =>
  Effect.map(swaggerUi, (ui) => {
    const base = basePath(site)
    const content = `<p><a id="document" href="${base}${documentPaths.openApi}">OpenAPI 3.1</a> · <a href="${base}${documentPaths.llms}">llms.txt</a> for agents</p>
<noscript><p>This page needs JavaScript; <a href="${base}${documentPaths.llms}">llms.txt</a> does not.</p></noscript>
<div id="application"></div>`
    const description = "Every call of the interface, with examples and a form to try it"
    const style = `${ui.style}\nbody main{max-width:80rem;padding:2rem 1rem}`
    return sitePage(site, { title: "Docs", description, style, content, script: ui.script + start }, sha256Hex)
  })
