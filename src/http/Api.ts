/** The whole HTTP interface, version 1. */
import { HttpApi, OpenApi } from "effect/http-api"
import { ReceiptsApi } from "#http/ReceiptsApi.ts"
import { RegistrationApi } from "#http/RegistrationApi.ts"
import { SystemApi } from "#http/SystemApi.ts"
import { ValidationApi } from "#http/ValidationApi.ts"

/** The version of the interface, as /health and the OpenAPI document tell it. */
export const interfaceVersion = "0.1.0"

export class Api extends HttpApi.make("vatproof")
  .add(ValidationApi)
  .add(ReceiptsApi)
  .add(RegistrationApi)
  .add(SystemApi)
  .annotateMerge(
    OpenApi.annotations({
      title: "Vatproof",
      version: interfaceVersion,
      description: "Validates EU VAT IDs against the official sources and keeps the proof."
    })
  ) {}
