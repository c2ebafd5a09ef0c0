/** The operators' port: health, readiness and metrics. */
import { Effect, Layer, Option } from "effect"
import { Integrity } from "#domain/audit/Integrity.ts"
import { interfaceVersion } from "#http/Api.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as AdminServer from "#infra/server/AdminServer.ts"
import * as Readiness from "#infra/server/Readiness.ts"
import * as ProcessMetrics from "#infra/telemetry/ProcessMetrics.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** The operators' port where OpenTelemetry's Prometheus exporters have theirs. */
export const usualAdminPort = 9464

/** Where the pages for operators go; none where the settings want none. */
export const adminAddress = (usualPort: number) =>
  Effect.map(AppConfig, ({ adminHost: host, adminPort }) => {
    const port = Option.getOrElse(adminPort, () => usualPort)
    // Nobody chose the usual port: a second replica on this machine takes the next one.
    return Option.contains(adminPort, 0) ? Option.none() : Option.some({ host, port, ports: Option.isNone(adminPort) ? 64 : 1 })
  })

export const admin = (usualPort: number) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const address = yield* adminAddress(usualPort)
      if (Option.isNone(address)) return Layer.empty
      // A worker's pages are for the process that started it, which shows those of all workers together.
      const ofWorker = { host: "127.0.0.1", port: 0, ports: 1, announce: Workers.announce }
      return AdminServer.layer(Workers.isWorker ? ofWorker : address.value)
    })
  ).pipe(
    Layer.merge(ProcessMetrics.layer(interfaceVersion)),
    Layer.provideMerge(Readiness.Readiness.layer),
    Layer.provideMerge(Integrity.layer)
  )
