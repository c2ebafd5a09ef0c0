/** The whole service as one layer. The modules in layers/ provide its parts. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Duration, Effect, Layer, Option } from "effect"
import { admin, adminAddress, usualAdminPort } from "#app/layers/Admin.ts"
import { credentials } from "#app/layers/Credentials.ts"
import { http } from "#app/layers/Http.ts"
import { signedTree, wellFormedKeys } from "#app/layers/SignedLog.ts"
import { type DefaultSources, liveSources, sources } from "#app/layers/Sources.ts"
import { audit, opened, stores } from "#app/layers/Storage.ts"
import { telemetry } from "#app/layers/Telemetry.ts"
import { useCases } from "#app/layers/UseCases.ts"
import * as Metrics from "#domain/telemetry/Metrics.ts"
import * as Maintenance from "#events/Maintenance.ts"
import * as StoreGauges from "#events/StoreGauges.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as Protection from "#infra/postgres/Protection.ts"
import * as Draining from "#infra/server/Draining.ts"
import * as Readiness from "#infra/server/Readiness.ts"
import * as Workers from "#infra/workers/Workers.ts"
import * as WorkersAdmin from "#infra/workers/WorkersAdmin.ts"

/**
 * The service listens as soon as this layer is built. On shutdown, in-flight requests complete before the database connections close.
 * `adminPort` is the default admin port; 0 selects any free port.
 */
export const service = (defaults: DefaultSources = liveSources, adminPort = usualAdminPort) =>
  Readiness.layerServing.pipe(
    Layer.provide(http),
    Layer.provide(useCases),
    Layer.provide(sources(defaults)),
    Layer.provide(Layer.mergeAll(Maintenance.layer, Protection.layer, StoreGauges.layer, Layer.effectDiscard(Metrics.begin))),
    Layer.provide(audit),
    Layer.provide(stores),
    Layer.provide(signedTree),
    Layer.provide(opened),
    Layer.provide(Database.layer),
    Layer.provide(Layer.merge(credentials, wellFormedKeys)),
    Layer.provide(admin(adminPort)),
    Layer.provide(Draining.layer(Workers.untilReplaced)),
    Layer.provide(telemetry)
  )

/**
 * Runs the service in `count` worker processes that share its port. The parent process runs the embedded database, so that the
 * database outlives every worker.
 */
export const workers = (count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { port, shutdownDelay, shutdownGrace } = yield* AppConfig
      yield* Database.databaseUrl("own")
      // After `shutdownGrace`, a stopping worker has 20 seconds to finish mails in flight, export telemetry and close its database
      // connections.
      const stopTimeout = Duration.sum(Duration.sum(shutdownDelay, shutdownGrace), Duration.seconds(20))
      const adminPorts = new Map<number, number>()
      const address = yield* adminAddress(usualAdminPort)
      const pages = Option.map(address, (found) => WorkersAdmin.layer({ ...found, adminPorts }))
      yield* Layer.build(Option.getOrElse(pages, () => Layer.empty).pipe(Layer.provide(NodeHttpClient.layerUndici)))
      yield* Workers.run({ count, port, stopTimeout, adminPorts })
    })
  )
