/** All routes: the interface, what describes it, and the pages for people. */
import { Layer, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api, DecodedApi } from "#http/Api.ts"
import * as ApiKeysHandlers from "#http/accounts/ApiKeysHandlers.ts"
import * as AuditAuthentication from "#http/audit/AuditAuthentication.ts"
import * as AuditHandlers from "#http/audit/AuditHandlers.ts"
import * as Authentication from "#http/pipeline/Authentication.ts"
import * as Documents from "#http/site/Documents.ts"
import * as KeysHandlers from "#http/accounts/KeysHandlers.ts"
import * as LoginHandlers from "#http/accounts/LoginHandlers.ts"
import * as PasswordHandlers from "#http/accounts/PasswordHandlers.ts"
import * as ReceiptLinksHandlers from "#http/receipts/ReceiptLinksHandlers.ts"
import * as ReceiptsHandlers from "#http/receipts/ReceiptsHandlers.ts"
import * as RegistrationHandlers from "#http/accounts/RegistrationHandlers.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import * as SignupHandlers from "#http/accounts/SignupHandlers.ts"
import * as SitePages from "#http/site/SitePages.ts"
import * as SystemHandlers from "#http/system/SystemHandlers.ts"
import * as UsageHandlers from "#http/accounts/UsageHandlers.ts"
import { validatePath } from "#http/validation/ValidationApi.ts"
import * as ValidationHandlers from "#http/validation/ValidationHandlers.ts"

/** The endpoints that the library decodes and encodes. */
const decodedEndpoints = HttpApiBuilder.layer(DecodedApi).pipe(
  Layer.provide([
    ApiKeysHandlers.layer,
    AuditHandlers.layer,
    KeysHandlers.layer,
    LoginHandlers.layer,
    PasswordHandlers.layer,
    ReceiptLinksHandlers.layer,
    ReceiptsHandlers.layer,
    RegistrationHandlers.layer,
    SignupHandlers.layer
  ]),
  Layer.provide([
    AuditAuthentication.layerAuditorRequired,
    AuditAuthentication.layerProofReaderRequired,
    Authentication.layerKeyRequired,
    Authentication.layerLoginRequired,
    Authentication.layerReceiptReaderRequired,
    DecodeErrors.layer
  ])
)

export const layer = Layer.mergeAll(
  decodedEndpoints,
  Documents.layer,
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
  ...Object.values(Documents.documentPaths).map((path) => ({ path, method: "GET" }))
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
