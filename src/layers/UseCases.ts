/** The use cases that the endpoints call, and the background work on batches and tasks. */
import { Effect, Layer } from "effect"
import { ClaimApiKey } from "#domain/accounts/keys/ClaimApiKey.ts"
import { IssueApiKey } from "#domain/accounts/keys/IssueApiKey.ts"
import { RevokeApiKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { RotateApiKey } from "#domain/accounts/keys/RotateApiKey.ts"
import { ChangePassword } from "#domain/accounts/login/ChangePassword.ts"
import { LogIn } from "#domain/accounts/login/LogIn.ts"
import { ResetPassword } from "#domain/accounts/login/ResetPassword.ts"
import { Batches } from "#domain/pending/Batches.ts"
import * as BatchOpening from "#domain/pending/BatchOpening.ts"
import { PendingValidations } from "#domain/pending/PendingValidations.ts"
import * as TaskEngine from "#domain/pending/TaskEngine.ts"
import { Updates } from "#domain/pending/Updates.ts"
import { RegisterAgent } from "#domain/accounts/signup/RegisterAgent.ts"
import { SignUp } from "#domain/accounts/signup/SignUp.ts"
import { VerifyEmail } from "#domain/accounts/signup/VerifyEmail.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { validFor } from "#domain/vat/Freshness.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"

export const useCases = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const freshness = { valid: validFor, invalid: config.cacheTtlInvalid, stale: config.staleMaxAge }
    const names = { prefix: config.receiptPrefix, source: `${config.serviceName}-issued` }
    const { confirmationCountries: countries, requesterCountries } = config
    const validation = ValidateVatId.layer({ freshness, countries, requesterCountries })
    return Layer.mergeAll(
      Layer.mergeAll(Batches.layer, BatchOpening.layer, PendingValidations.layer, TaskEngine.layer, Updates.layer).pipe(
        Layer.provideMerge(validation.pipe(Layer.provide(ConfirmVatId.layer(names))))
      ),
      Layer.mergeAll(RegisterAgent.layer(config.registrationsPerDay), SignUp.layer(config.signupsPerDay), VerifyEmail.layer),
      Layer.mergeAll(LogIn.layer(config.loginFailuresPer15Min), ResetPassword.layer, ChangePassword.layer),
      Layer.mergeAll(ClaimApiKey.layer, IssueApiKey.layer, RevokeApiKey.layer, RotateApiKey.layer)
    )
  })
)
