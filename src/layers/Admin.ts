/** The admin port for operators: health, readiness and metrics. */
import { Effect, Layer, Option } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { version } from "#domain/kernel/Version.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as AdminServer from "#infra/server/AdminServer.ts"
import * as Readiness from "#infra/server/Readiness.ts"
import * as ProcessMetrics from "#infra/telemetry/ProcessMetrics.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** The default admin port, which OpenTelemetry's Prometheus exporters use as well. */
export const usualAdminPort = 9464

/** Returns the address of the admin port and the number of ports to try, or None if ADMIN_PORT=0 disables it. */
export const adminAddress = (usualPort: number) =>
  Effect.map(AppConfig, ({ adminHost: host, adminPort }) => {
    const port = Option.getOrElse(adminPort, () => usualPort)
    // Without ADMIN_PORT, up to 64 ports are tried, so that several replicas can run on one machine. A configured port must be free.
    return Option.contains(adminPort, 0) ? Option.none() : Option.some({ host, port, ports: Option.isNone(adminPort) ? 64 : 1 })
  })

/** Serves the admin port. Provides process metrics, Readiness and Integrity. */
export const admin = (usualPort: number) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const address = yield* adminAddress(usualPort)
      if (Option.isNone(address)) return Layer.empty
      // A worker announces its admin port only to its parent process, which combines the answers of all workers.
      const ofWorker = { host: "127.0.0.1", port: 0, ports: 1, announce: Workers.announce }
      return AdminServer.layer(Workers.isWorker ? ofWorker : address.value)
    })
  ).pipe(
    Layer.merge(ProcessMetrics.layer(version)),
    Layer.provideMerge(Readiness.Readiness.layer),
    Layer.provideMerge(Integrity.layer)
  )
