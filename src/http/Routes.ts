/** All routes of the service: the REST interface, its documentation and the HTML pages. */
import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api, DecodedApi } from "#http/Api.ts"
import * as ApiKeysHandlers from "#http/accounts/keys/ApiKeysHandlers.ts"
import * as AuditAuthentication from "#http/audit/AuditAuthentication.ts"
import * as AuditHandlers from "#http/audit/AuditHandlers.ts"
import * as Authentication from "#http/pipeline/Authentication.ts"
import * as BatchesHandlers from "#http/pending/BatchesHandlers.ts"
import * as Documents from "#http/site/Documents.ts"
import * as KeysHandlers from "#http/accounts/keys/KeysHandlers.ts"
import * as LoginHandlers from "#http/accounts/login/LoginHandlers.ts"
import * as PasswordHandlers from "#http/accounts/login/PasswordHandlers.ts"
import * as PendingValidationsHandlers from "#http/pending/PendingValidationsHandlers.ts"
import * as ReceiptLinksHandlers from "#http/receipts/ReceiptLinksHandlers.ts"
import * as ReceiptsHandlers from "#http/receipts/ReceiptsHandlers.ts"
import * as RegistrationHandlers from "#http/accounts/signup/RegistrationHandlers.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import { documentPaths } from "#http/pipeline/SiteSettings.ts"
import { makeRouteTable, type Route } from "#http/pipeline/RouteTable.ts"
import * as SignupHandlers from "#http/accounts/signup/SignupHandlers.ts"
import * as SitePages from "#http/site/SitePages.ts"
import * as SourceHistoryHandlers from "#http/system/SourceHistoryHandlers.ts"
import * as SystemHandlers from "#http/system/SystemHandlers.ts"
import * as UpdatesHandlers from "#http/pending/UpdatesHandlers.ts"
import * as UsageHandlers from "#http/callers/UsageHandlers.ts"
import { validatePath } from "#http/validation/ValidationApi.ts"
import * as ValidationHandlers from "#http/validation/ValidationHandlers.ts"

/** Serves the endpoints of `DecodedApi`. */
const decodedEndpoints = HttpApiBuilder.layer(DecodedApi).pipe(
  Layer.provide([
    ApiKeysHandlers.layer,
    AuditHandlers.layer,
    BatchesHandlers.layer,
    KeysHandlers.layer,
    LoginHandlers.layer,
    PasswordHandlers.layer,
    PendingValidationsHandlers.layer,
    ReceiptLinksHandlers.layer,
    ReceiptsHandlers.layer,
    RegistrationHandlers.layer,
    SignupHandlers.layer,
    SourceHistoryHandlers.layer,
    UpdatesHandlers.layer
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

/** All routes, with their paths in the router. Tiles have one path with a wildcard here, and two paths in the OpenAPI document. */
const routes: ReadonlyArray<Route> = [
  ...Object.values(Api.groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map(({ method, path }) => ({
      path: path.replace(/:(\w+)/gu, "{$1}"),
      method,
      isCharged: path === validatePath
    }))
  ),
  ...SitePages.sitePaths,
  ...Object.values(documentPaths).map((path) => ({ path, method: "GET" }))
]

export const routeTable = makeRouteTable(routes)
