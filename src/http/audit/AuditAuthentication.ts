/** Authenticates readers of the log: auditors by their token, and for the proof of a receipt the API key it was issued to. */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { Auditor } from "#domain/audit/Auditor.ts"
import { Auditors } from "#domain/audit/Auditors.ts"
import type { ProofReader } from "#domain/audit/AuditTrail.ts"
import { makeKeyCallerOf } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"

/** The auditor of the request being served. */
export class CurrentAuditor extends Context.Service<CurrentAuditor, Auditor>()("vatproof/http/audit/CurrentAuditor") {}

/** The header that carries an auditor's token. */
const auditorToken = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotate(OpenApi.Description, "An auditor's token, svc_audit_…: `vatproof auditor add` makes one")
)

/** Rejects requests without an auditor's token. */
export class AuditorRequired extends HttpApiMiddleware.Service<AuditorRequired, { provides: CurrentAuditor }>()(
  "vatproof/http/audit/AuditorRequired",
  { security: { auditorToken } }
) {}

/** The reader of a proof. */
export class CurrentProofReader extends Context.Service<CurrentProofReader, ProofReader>()(
  "vatproof/http/audit/CurrentProofReader"
) {}

const apiKey = HttpApiSecurity.apiKey({ key: "X-Api-Key", in: "header" })

/** Accepts auditors and API keys. */
export class ProofReaderRequired extends HttpApiMiddleware.Service<ProofReaderRequired, { provides: CurrentProofReader }>()(
  "vatproof/http/audit/ProofReaderRequired",
  { security: { auditorToken, apiKey } }
) {}

/** RFC 9110, 15.5.2: a 401 says how to authenticate. */
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

    // The first of the two schemes decides for both, because a wrong key must be rejected and not ignored.
    const identify = Effect.fnUntraced(function* <A, E, R>(httpEffect: Effect.Effect<A, E, R>) {
      const reader = yield* Effect.result(readerOf)
      if (reader._tag === "Failure") return challenge(yield* FailureResponses.respond(Effect.fail(reader.failure)))
      return yield* Effect.provideService(httpEffect, CurrentProofReader, reader.success)
    })
    return { auditorToken: identify, apiKey: identify }
  })
)
