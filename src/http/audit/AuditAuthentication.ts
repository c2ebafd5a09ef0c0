/** Authenticates the readers of the log: auditors by their token. A proof can also be read with an API key. */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { Auditor } from "#domain/audit/Auditor.ts"
import { Auditors } from "#domain/audit/Auditors.ts"
import type { ProofReader } from "#domain/audit/AuditTrail.ts"
import { makeKeyCallerOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

/** The auditor of the current request. `AuditorRequired` provides it. */
export class CurrentAuditor extends Context.Service<CurrentAuditor, Auditor>()("vatproof/http/audit/CurrentAuditor") {}

/** The security scheme of auditors: a token in the header Authorization. */
const auditorToken = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotate(OpenApi.Description, "An auditor's token, svc_audit_…: `vatproof auditor add` issues one")
)

/** Rejects requests without a valid auditor's token. */
export class AuditorRequired extends HttpApiMiddleware.Service<AuditorRequired, { provides: CurrentAuditor }>()(
  "vatproof/http/audit/AuditorRequired",
  { security: { auditorToken } }
) {}

/** The reader of a proof: an auditor or an API key. `ProofReaderRequired` provides it. */
export class CurrentProofReader extends Context.Service<CurrentProofReader, ProofReader>()(
  "vatproof/http/audit/CurrentProofReader"
) {}

const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Rejects requests without a valid auditor's token or API key. */
export class ProofReaderRequired extends HttpApiMiddleware.Service<ProofReaderRequired, { provides: CurrentProofReader }>()(
  "vatproof/http/audit/ProofReaderRequired",
  { security: { auditorToken, apiKey } }
) {}

/** Adds the authentication scheme to a 401 (RFC 9110, 15.5.2). Other responses stay unchanged. */
const challenge = (refusal: HttpServerResponse.HttpServerResponse) =>
  refusal.status === 401 ? HttpServerResponse.setHeader(refusal, "www-authenticate", "Bearer") : refusal

export const layerAuditorRequired = Layer.effect(
  AuditorRequired,
  Effect.gen(function* () {
    const auditors = yield* Auditors
    return {
      auditorToken: Effect.fnUntraced(function* (httpEffect, { credential }) {
        const auditor = yield* Effect.result(auditors.byToken(credential))
        if (auditor._tag === "Failure") return challenge(yield* FailureResponses.respond(Effect.fail(auditor.failure)))
        return yield* Effect.provideService(httpEffect, CurrentAuditor, auditor.success)
      })
    }
  })
)

export const layerProofReaderRequired = Layer.effect(
  ProofReaderRequired,
  Effect.gen(function* () {
    const auditors = yield* Auditors
    const keyCallerOf = yield* makeKeyCallerOf

    const readerOf = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { headers } = request
      if (headers["x-api-key"] !== undefined) {
        const { keyId } = yield* keyCallerOf(request)
        return { _tag: "Key", keyId } satisfies ProofReader
      }
      const token = /^bearer +(\S+)$/iu.exec(headers["authorization"] ?? "")?.[1] ?? ""
      return { _tag: "Auditor", auditor: yield* auditors.byToken(Redacted.make(token)) } satisfies ProofReader
    })

    // If one security scheme fails, the library tries the next scheme. A request with a wrong API key and a valid auditor's token would
    // therefore be accepted. `identify` prevents this: it checks both schemes itself, and returns a response instead of a failure.
    const identify = Effect.fnUntraced(function* <A, E, R>(httpEffect: Effect.Effect<A, E, R>) {
      const reader = yield* Effect.result(readerOf)
      if (reader._tag === "Failure") return challenge(yield* FailureResponses.respond(Effect.fail(reader.failure)))
      return yield* Effect.provideService(httpEffect, CurrentProofReader, reader.success)
    })
    return { auditorToken: identify, apiKey: identify }
  })
)
