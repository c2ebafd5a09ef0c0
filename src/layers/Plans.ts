/** The plans with the limits from the settings. */
import { Effect, Layer } from "effect"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"

export const plans = Layer.effect(
  Plans,
  Effect.map(AppConfig, ({ anonymousLifetime: lifetime, anonymousPerMinute: perMinute, plans: byName }) => ({
    byName,
    anonymous: { lifetime, perMinute }
  }))
)
