/** Declares all endpoints of the REST interface, version 1. */
import { HttpApi, OpenApi } from "effect/http-api"
import { ApiKeysApi } from "#http/accounts/keys/ApiKeysApi.ts"
import { AuditApi } from "#http/audit/AuditApi.ts"
import { BatchesApi } from "#http/pending/BatchesApi.ts"
import { ErrorBody } from "#http/openapi/ErrorMeanings.ts"
import { KeysApi } from "#http/accounts/keys/KeysApi.ts"
import { LoginApi } from "#http/accounts/login/LoginApi.ts"
import { version } from "#domain/kernel/Version.ts"
import { openApiDocument } from "#http/openapi/OpenApiDocument.ts"
import { openApiIntroduction } from "#http/openapi/OpenApiIntroduction.ts"
import { PasswordApi } from "#http/accounts/login/PasswordApi.ts"
import { PendingValidationsApi } from "#http/pending/PendingValidationsApi.ts"
import { ReceiptLinksApi } from "#http/receipts/ReceiptLinksApi.ts"
import { ReceiptsApi } from "#http/receipts/ReceiptsApi.ts"
import { RegistrationApi } from "#http/accounts/signup/RegistrationApi.ts"
import { SignupApi } from "#http/accounts/signup/SignupApi.ts"
import { SourceHistoryApi } from "#http/system/SourceHistoryApi.ts"
import { SystemApi } from "#http/system/SystemApi.ts"
import { UpdatesApi } from "#http/pending/UpdatesApi.ts"
import { UsageApi } from "#http/callers/UsageApi.ts"
import { ValidationApi } from "#http/validation/ValidationApi.ts"

/** A parse option: with it, the error for an invalid request lists all invalid fields instead of only the first one. */
const everyField = { errors: "all" } as const

/** Returns the `servers` of the OpenAPI document. `url` is relative to the URL of the document. */
export const serversAt = (url: string) => [{ url, description: "The service that serves this document" }]

/**
 * The endpoints whose requests and responses `HttpApiBuilder` decodes and encodes. The other endpoints are added to the router
 * directly, because the decoding by `HttpApiBuilder` costs too much CPU time.
 */
export class DecodedApi extends HttpApi.make("vatproof")
  .add(PendingValidationsApi)
  .add(BatchesApi)
  .add(UpdatesApi)
  .add(ReceiptsApi)
  .add(ReceiptLinksApi)
  .add(RegistrationApi)
  .add(KeysApi)
  .add(SignupApi)
  .add(LoginApi)
  .add(PasswordApi)
  .add(ApiKeysApi)
  .add(AuditApi)
  .add(SourceHistoryApi)
  .annotate(HttpApi.PayloadParseOptions, everyField)
  .annotate(HttpApi.QueryParseOptions, everyField) {}

/** All endpoints, as the OpenAPI document describes them. */
export class Api extends HttpApi.make("vatproof")
  .add(ValidationApi)
  .addHttpApi(DecodedApi)
  .add(UsageApi)
  .add(SystemApi)
  .annotate(HttpApi.AdditionalSchemas, [ErrorBody])
  .annotate(HttpApi.PayloadParseOptions, everyField)
  .annotate(HttpApi.QueryParseOptions, everyField)
  .annotateMerge(
    OpenApi.annotations({
      title: "Vatproof",
      version,
      summary: "Validates EU VAT IDs against the official sources and keeps the proof",
      description: openApiIntroduction,
      servers: serversAt("/"),
      transform: openApiDocument
    })
  ) {}
