/** All routes: the interface, its OpenAPI document and the page that shows it. */
import { Layer } from "effect"
import { HttpApiBuilder, HttpApiScalar, OpenApi } from "effect/http-api"
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

/** The interface as an OpenAPI 3.1 document. */
export const openApi = OpenApi.fromApi(Api)

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
  // The page carries its own script and fonts: it works without the internet.
  HttpApiScalar.layer(Api, { path: docsPath, scalar: { withDefaultFonts: false } })
)

const methodsByPath: ReadonlyArray<readonly [RegExp, ReadonlyArray<string>]> = [
  ...Object.entries(openApi.paths).map(
    ([path, operations]) => [patternOf(path), Object.keys(operations).map((method) => method.toUpperCase())] as const
  ),
  [patternOf(documentPath), ["GET"]],
  [patternOf(docsPath), ["GET"]]
]

const templates: ReadonlyArray<readonly [RegExp, string]> = [...Object.keys(openApi.paths), documentPath, docsPath].map(
  (path) => [patternOf(path), path]
)

/** The template of the route that a path belongs to, as OpenAPI writes it; null if there is none. */
export const templateOf = (path: string): string | null => templates.find(([pattern]) => pattern.test(path))?.[1] ?? null

/** The methods that a path answers; none if there is no such path. */
export const allowedMethods = (path: string): ReadonlyArray<string> =>
  methodsByPath
    .find(([pattern]) => pattern.test(path))?.[1]
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])) ?? []

function patternOf(template: string): RegExp {
  return new RegExp(
    `^${template
      .replace(/[.]/gu, "\\.")
      .replace(/\{\w+\}/gu, "[^/]+")
      .replace(/\*/gu, ".+")}/?$`,
    "u"
  )
}
