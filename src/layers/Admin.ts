/** The operators' port: health, readiness and metrics. */
import { Effect, Layer, Option } from "effect"
import { Integrity } from "#domain/audit/Integrity.ts"
import { interfaceVersion } from "#http/Api.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as AdminServer from "#infra/server/AdminServer.ts"
import * as Readiness from "#infra/server/Readiness.ts"
import * as ProcessMetrics from "#infra/telemetry/ProcessMetrics.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** The port that OpenTelemetry's Prometheus exporters use. */
export const usualAdminPort = 9464

/** The address of the operators' pages; none if the settings disable them. */
export const adminAddress = (usualPort: number) =>
  Effect.map(AppConfig, ({ adminHost: host, adminPort }) => {
    const port = Option.getOrElse(adminPort, () => usualPort)
    // The default port is not required: a second replica on this machine takes the next one.
    return Option.contains(adminPort, 0) ? Option.none() : Option.some({ host, port, ports: Option.isNone(adminPort) ? 64 : 1 })
  })

export const admin = (usualPort: number) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const address = yield* adminAddress(usualPort)
      if (Option.isNone(address)) return Layer.empty
      // A worker serves its pages to the process that started it, which combines those of all workers.
      const ofWorker = { host: "127.0.0.1", port: 0, ports: 1, announce: Workers.announce }
      return AdminServer.layer(Workers.isWorker ? ofWorker : address.value)
    })
  ).pipe(
    Layer.merge(ProcessMetrics.layer(interfaceVersion)),
    Layer.provideMerge(Readiness.Readiness.layer),
    Layer.provideMerge(Integrity.layer)
  )
