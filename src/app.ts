/** The layer graph: what is made of what. Nothing else composes layers. */
import { NodeHttpClient } from "@effect/platform-node"
import { ByteSize, Duration, Effect, Layer, Option, Path } from "effect"
import { HttpIncomingMessage, HttpRouter } from "effect/http"
import { ConfirmVatId } from "#domain/ConfirmVatId.ts"
import { Plans } from "#domain/Plan.ts"
import { RegisterAgent } from "#domain/RegisterAgent.ts"
import { ValidateVatId } from "#domain/ValidateVatId.ts"
import { EventStore } from "#events/EventStore.ts"
import * as KeyedHash from "#events/KeyedHash.ts"
import * as SourceLog from "#events/SourceLog.ts"
import * as Meters from "#events/Meters.ts"
import * as Accounts from "#events/projections/Accounts.ts"
import * as Answers from "#events/projections/Answers.ts"
import * as Callers from "#events/projections/Callers.ts"
import * as Receipts from "#events/projections/Receipts.ts"
import { TrustedProxies } from "#http/ClientAddress.ts"
import * as Envelope from "#http/Envelope.ts"
import { UpgradeUrl } from "#http/Errors.ts"
import * as Routes from "#http/Routes.ts"
import { AppConfig, requesterOf } from "#infra/AppConfig.ts"
import * as Bzst from "#infra/Bzst.ts"
import * as BzstConfirmations from "#infra/BzstConfirmations.ts"
import * as DisposableDomains from "#infra/DisposableDomains.ts"
import * as EmbeddedPostgres from "#infra/EmbeddedPostgres.ts"
import * as GuardedSources from "#infra/GuardedSources.ts"
import * as Hashing from "#infra/Hashing.ts"
import * as HttpListener from "#infra/HttpListener.ts"
import * as Maintenance from "#events/Maintenance.ts"
import * as Migrations from "#infra/Migrations.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as Protection from "#infra/Protection.ts"
import * as Randomness from "#infra/Randomness.ts"
import * as RateLimits from "#events/RateLimits.ts"
import * as SourceFailover from "#infra/SourceFailover.ts"
import * as Vies from "#infra/Vies.ts"

/** The authorities' own addresses (UPSTREAMS, read 2026-11). */
const liveSources = {
  viesBaseUrl: "https://ec.europa.eu/taxation_customs/vies/rest-api",
  bzstBaseUrl: "https://api.evatr.vies.bzst.de/app"
}

/** Where the sources are when the settings do not say. */
export interface DefaultSources {
  readonly viesBaseUrl: string
  readonly bzstBaseUrl: string
}

/** Connections a replica holds: batching needs few. */
const maxConnections = 10

/** The database's address: DATABASE_URL, else the embedded server of DATA_DIR. `attach` uses one that a service runs already. */
const databaseUrl = Effect.fnUntraced(function* (mode: "own" | "attach") {
  const config = yield* AppConfig
  if (Option.isSome(config.databaseUrl)) return config.databaseUrl.value
  const path = yield* Path.Path
  const { url } = yield* EmbeddedPostgres.make({ dir: path.resolve(config.dataDir, "postgres"), mode })
  return url
})

/** Connections of the service on a migrated database. */
const database = Layer.unwrap(
  Effect.gen(function* () {
    const url = yield* databaseUrl("own")
    const migrated = Migrations.layer.pipe(Layer.provide(Postgres.layerAdministrator({ url, maxConnections: 2 })))
    return Postgres.layer({ url, maxConnections }).pipe(Layer.provideMerge(migrated))
  })
)

/** Applies what is pending, beside a running service or without one; gives back the names. */
export const migrate = Effect.scoped(
  Effect.gen(function* () {
    const url = yield* databaseUrl("attach")
    return yield* Effect.provide(Migrations.run(), Postgres.layerAdministrator({ url, maxConnections: 2 }))
  })
)

const plans = Layer.effect(
  Plans,
  Effect.gen(function* () {
    const { anonymousLifetime, anonymousPerMinute, plans } = yield* AppConfig
    return { byName: plans, anonymous: { lifetime: anonymousLifetime, perMinute: anonymousPerMinute } }
  })
)

const stores = Layer.mergeAll(
  Meters.layer,
  SourceLog.layer,
  Answers.layer,
  Callers.layer,
  Accounts.layer,
  Receipts.layer,
  RateLimits.layer
).pipe(
  Layer.provideMerge(Layer.merge(EventStore.layer, KeyedHash.layer)),
  Layer.provideMerge(Layer.mergeAll(plans, Hashing.layer, DisposableDomains.layer, Randomness.layer))
)

const sources = (defaults: DefaultSources) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const config = yield* AppConfig
      const vies = Vies.layer({ baseUrl: Option.getOrElse(config.viesBaseUrl, () => defaults.viesBaseUrl) })
      const bzst = Bzst.layer({ baseUrl: Option.getOrElse(config.bzstBaseUrl, () => defaults.bzstBaseUrl) })
      const failover = SourceFailover.layer({ requester: requesterOf(config), replica: `${config.host}:${config.port}` })
      return Layer.merge(failover, BzstConfirmations.layer).pipe(
        Layer.provide(GuardedSources.layer),
        Layer.provide([vies, bzst]),
        Layer.provide(NodeHttpClient.layerUndici)
      )
    })
  )

const useCases = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const freshness = { valid: Duration.hours(24), invalid: config.cacheTtlInvalid, stale: config.staleMaxAge }
    const names = { prefix: config.receiptPrefix, source: `${config.serviceName}-issued` }
    const validation = ValidateVatId.layer({ freshness, countries: config.confirmationCountries })
    return Layer.merge(validation, RegisterAgent.layer(config.registrationsPerDay)).pipe(Layer.provide(ConfirmVatId.layer(names)))
  })
)

/** A body may have this much; what is larger is answered with 413 and not read. */
const maxBodySize = Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16))

const http = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const publicUrl = Option.getOrElse(config.publicUrl, () => `http://${config.host}:${config.port}`)
    const upgradeUrl = Option.getOrElse(config.upgradeUrl, () => `${publicUrl}/docs`)
    return HttpRouter.serve(Layer.merge(Routes.layer, Envelope.layer), { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provide(HttpListener.layer({ host: config.host, port: config.port })),
      Layer.provide([
        maxBodySize,
        Layer.succeed(UpgradeUrl, upgradeUrl),
        Layer.succeed(TrustedProxies, { count: config.trustedProxies })
      ])
    )
  })
)

/** The whole service. It listens as soon as the layer is built, and stops with it: first the requests, last the database. */
export const service = (defaults: DefaultSources = liveSources) =>
  http.pipe(
    Layer.provide(useCases),

    Layer.provide(sources(defaults)),
    Layer.provide(Layer.merge(Maintenance.layer, Protection.layer)),
    Layer.provide(stores),
    Layer.provide(database)
  )
