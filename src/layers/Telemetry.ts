/** Traces, metrics and logs. */
import { Effect, Layer } from "effect"
import { version } from "#domain/kernel/Version.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"
import * as Telemetry from "#infra/telemetry/Telemetry.ts"

/** Exports traces, metrics and logs to a collector, if one is configured. */
export const telemetry = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const redaction = Redaction.make(KnownSecrets.make(config))
    return Telemetry.layer(config.telemetry, { serviceName: config.serviceName, serviceVersion: version, redaction })
  })
)
