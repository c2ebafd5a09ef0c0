/** All routes: the interface, its OpenAPI document and the page that shows it. */
import { Layer } from "effect"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { Api } from "#http/Api.ts"
import * as ApiKeysHandlers from "#http/ApiKeysHandlers.ts"
import * as AuditAuthentication from "#http/AuditAuthentication.ts"
import * as AuditHandlers from "#http/AuditHandlers.ts"
import * as Authentication from "#http/Authentication.ts"
import * as LoginHandlers from "#http/LoginHandlers.ts"
import * as ReceiptsHandlers from "#http/ReceiptsHandlers.ts"
import * as RegistrationHandlers from "#http/RegistrationHandlers.ts"
import * as RequestErrors from "#http/RequestErrors.ts"
import * as SignupHandlers from "#http/SignupHandlers.ts"
import * as SystemHandlers from "#http/SystemHandlers.ts"
import * as UsageHandlers from "#http/UsageHandlers.ts"
import * as ValidationHandlers from "#http/ValidationHandlers.ts"

const documentPath = "/openapi.json"
const docsPath = "/docs"

/** The page carries its own script and fonts: it works without the internet. What it would offer its makers' users is no business of ours. */
const page = { withDefaultFonts: false, showDeveloperTools: "never" }

export const layer = Layer.mergeAll(
  HttpApiBuilder.layer(Api, { openapiPath: documentPath }).pipe(
    Layer.provide([
      ApiKeysHandlers.layer,
      AuditHandlers.layer,
      LoginHandlers.layer,
      ReceiptsHandlers.layer,
      RegistrationHandlers.layer,
      SignupHandlers.layer,
      SystemHandlers.layer,
      UsageHandlers.layer,
      ValidationHandlers.layer
    ]),
    Layer.provide([
      AuditAuthentication.layerAuditorRequired,
      AuditAuthentication.layerProofReaderRequired,
      Authentication.layerAdmission,
      Authentication.layerKeyRequired,
      Authentication.layerLoginRequired,
      RequestErrors.layer
    ])
  ),
  HttpApiScalar.layer(Api, { path: docsPath, scalar: page })
)

/** All routes as the router knows them: the document describes tiles by other paths. */
const routes: ReadonlyArray<{ readonly path: string; readonly method: string }> = [
  ...Object.values(Api.groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map(({ method, path }) => ({ path: path.replace(/:(\w+)/gu, "{$1}"), method }))
  ),
  { path: documentPath, method: "GET" },
  { path: docsPath, method: "GET" }
]

const methodsByPath = Array.from(Map.groupBy(routes, ({ path }) => path)).map(([path, sharing]) => ({
  path,
  pattern: patternOf(path),
  methods: sharing.map(({ method }) => method)
}))

const routeOf = (path: string) => methodsByPath.find(({ pattern }) => pattern.test(path))

/** The template of the route that a path belongs to, with the names of its parameters in braces; null if there is none. */
export const templateOf = (path: string): string | null => routeOf(path)?.path ?? null

/** The methods that a path answers; none if there is no such path. */
export const allowedMethods = (path: string): ReadonlyArray<string> =>
  routeOf(path)?.methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])) ?? []

function patternOf(template: string): RegExp {
  return new RegExp(
    `^${template
      .replace(/[.]/gu, "\\.")
      .replace(/\{\w+\}/gu, "[^/]+")
      .replace(/\*/gu, ".+")}/?$`,
    "u"
  )
}
