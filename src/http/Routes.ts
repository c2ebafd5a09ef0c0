/** All routes: the interface, its OpenAPI document and the page that shows it. */
import { Effect, Layer, Result } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar, OpenApi } from "effect/http-api"
import { Api, DecodedApi, serversAt } from "#http/Api.ts"
import * as ApiKeysHandlers from "#http/ApiKeysHandlers.ts"
import * as AuditAuthentication from "#http/AuditAuthentication.ts"
import * as AuditHandlers from "#http/AuditHandlers.ts"
import * as Authentication from "#http/Authentication.ts"
import * as LoginHandlers from "#http/LoginHandlers.ts"
import * as ReceiptsHandlers from "#http/ReceiptsHandlers.ts"
import * as RegistrationHandlers from "#http/RegistrationHandlers.ts"
import * as RequestErrors from "#http/RequestErrors.ts"
import * as SignupHandlers from "#http/SignupHandlers.ts"
import * as SitePages from "#http/SitePages.ts"
import { basePath, Site } from "#http/Site.ts"
import * as SystemHandlers from "#http/SystemHandlers.ts"
import * as UsageHandlers from "#http/UsageHandlers.ts"
import { validatePath } from "#http/ValidationApi.ts"
import * as ValidationHandlers from "#http/ValidationHandlers.ts"

export const documentPath = "/openapi.json"
export const docsPath = "/docs"

/** The page carries its own script and fonts: it works without the internet. What it would offer its makers' users is no business of ours. */
const page = { withDefaultFonts: false, showDeveloperTools: "never" }

/** The endpoints that the library decodes and encodes. */
const decodedEndpoints = HttpApiBuilder.layer(DecodedApi).pipe(
  Layer.provide([
    ApiKeysHandlers.layer,
    AuditHandlers.layer,
    LoginHandlers.layer,
    ReceiptsHandlers.layer,
    RegistrationHandlers.layer,
    SignupHandlers.layer
  ]),
  Layer.provide([
    AuditAuthentication.layerAuditorRequired,
    AuditAuthentication.layerProofReaderRequired,
    Authentication.layerKeyRequired,
    Authentication.layerLoginRequired,
    RequestErrors.layer
  ])
)

const keptByReaders = HttpRouter.middleware(Effect.map(HttpServerResponse.setHeaders(SitePages.kept))).layer

/** The document of the interface, and the page that shows it. It is made when it is first asked for. */
const documents = Layer.unwrap(
  Effect.gen(function* () {
    const api = Api.annotate(OpenApi.Servers, serversAt(basePath(yield* Site) || "/"))
    const document = yield* Effect.cached(Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))))
    return Layer.merge(
      HttpRouter.add("GET", documentPath, document),
      HttpApiScalar.layer(api, { path: docsPath, scalar: page })
    ).pipe(Layer.provide(keptByReaders))
  })
)

export const layer = Layer.mergeAll(
  decodedEndpoints,
  documents,
  SitePages.layer,
  SystemHandlers.layer,
  UsageHandlers.layer,
  ValidationHandlers.layer
)

/** All routes as the router knows them: the document describes tiles by other paths. */
const routes: ReadonlyArray<{ readonly path: string; readonly method: string }> = [
  ...Object.values(Api.groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map(({ method, path }) => ({ path: templateOfPath(path), method }))
  ),
  ...SitePages.sitePaths,
  { path: documentPath, method: "GET" },
  { path: docsPath, method: "GET" }
]

const methodsByPath = Array.from(Map.groupBy(routes, ({ path }) => path)).map(([path, sharing]) => ({
  path,
  pattern: patternOf(path),
  methods: sharing.map(({ method }) => method)
}))

/** The router reads escaped characters as what they stand for; what cannot be read is no path of ours. */
const unescaped = (path: string) =>
  path.includes("%")
    ? Result.getOrElse(
        Result.try(() => decodeURI(path)),
        () => path
      )
    : path

const routeOf = (path: string) => {
  const readable = unescaped(path)
  return methodsByPath.find(({ pattern }) => pattern.test(readable))
}

/** The template of the route that a path belongs to, with the names of its parameters in braces; null if there is none. */
export const templateOf = (path: string): string | null => routeOf(path)?.path ?? null

/** The methods that a path answers; none if there is no such path. HEAD is answered like GET, except where a call is charged. */
export const allowedMethods = (path: string): ReadonlyArray<string> => {
  const route = routeOf(path)
  if (route === undefined) return []
  const isCharged = route.path === templateOfPath(validatePath)
  return route.methods.flatMap((method) => (method === "GET" && !isCharged ? ["GET", "HEAD"] : [method]))
}

/** The path of an endpoint with its parameters in braces. */
function templateOfPath(path: string): string {
  return path.replace(/:(\w+)/gu, "{$1}")
}

function patternOf(template: string): RegExp {
  return new RegExp(
    `^${template
      .replace(/[.]/gu, "\\.")
      .replace(/\{\w+\}/gu, "[^/]+")
      .replace(/\*/gu, ".+")}$`,
    "u"
  )
}
