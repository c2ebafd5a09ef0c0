/** The layer graph: what is made of what. Nothing else composes layers. */
import { hostname } from "node:os"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Array as Arr, ByteSize, Duration, Effect, Layer, Option, Path, Redacted } from "effect"
import { HttpIncomingMessage, HttpMiddleware, HttpRouter } from "effect/http"
import * as AnswerCache from "#domain/vat/AnswerCache.ts"
import { ApiKeys } from "#domain/accounts/ApiKeys.ts"
import { ChangePlan } from "#domain/accounts/ChangePlan.ts"
import { CloseAccount } from "#domain/accounts/CloseAccount.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import * as Identity from "#domain/callers/Identity.ts"
import { Integrity } from "#domain/audit/Integrity.ts"
import { LogIn } from "#domain/login/LogIn.ts"
import { Retention } from "#domain/kernel/PersonalData.ts"
import { Plans } from "#domain/callers/Plan.ts"
import { RegisterAgent } from "#domain/signup/RegisterAgent.ts"
import { SignUp } from "#domain/signup/SignUp.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { ResetPassword } from "#domain/login/ResetPassword.ts"
import { ChangePassword } from "#domain/login/ChangePassword.ts"
import { EmailLinks } from "#domain/email/EmailLinks.ts"
import { VerifyEmail } from "#domain/signup/VerifyEmail.ts"
import { EventStore } from "#events/store/EventStore.ts"
import * as StoreGauges from "#events/store/StoreGauges.ts"
import * as PgKeyedHash from "#events/callers/PgKeyedHash.ts"
import * as RetentionJob from "#events/personal/RetentionJob.ts"
import { PersonalErasure } from "#events/personal/PersonalErasure.ts"
import { Projections } from "#events/projections/Projections.ts"
import * as EventIndex from "#events/projections/EventIndex.ts"
import * as SourceEvents from "#events/store/SourceEvents.ts"
import * as PgLoginLog from "#events/accounts/PgLoginLog.ts"
import * as PgMetering from "#events/callers/PgMetering.ts"
import * as Outbox from "#events/outbox/Outbox.ts"
import * as PgAccountDirectory from "#events/accounts/PgAccountDirectory.ts"
import * as PgAccountStore from "#events/accounts/PgAccountStore.ts"
import * as PgAnswerCache from "#events/answers/PgAnswerCache.ts"
import * as PgAuditors from "#events/audit/PgAuditors.ts"
import * as PgAuditTrail from "#events/audit/PgAuditTrail.ts"
import * as PgIdentity from "#events/callers/PgIdentity.ts"
import * as PgKeyDirectory from "#events/accounts/PgKeyDirectory.ts"
import * as PgCredentials from "#events/accounts/PgCredentials.ts"
import * as PgReceiptLinks from "#events/answers/PgReceiptLinks.ts"
import * as PgReceipts from "#events/answers/PgReceipts.ts"
import * as PgUsageAudit from "#events/callers/PgUsageAudit.ts"
import * as PgEmailTokens from "#events/accounts/PgEmailTokens.ts"
import { interfaceVersion } from "#http/Api.ts"
import { TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import { CorsOrigins } from "#http/pipeline/Cors.ts"
import * as HttpBoundary from "#http/pipeline/HttpBoundary.ts"
import { unroutableResponse } from "#http/pipeline/Errors.ts"
import { AccessLog } from "#http/pipeline/RequestLog.ts"
import * as Routes from "#http/Routes.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"
import * as Jwt from "#infra/security/Jwt.ts"
import * as AdminServer from "#infra/server/AdminServer.ts"
import { notary, signedTree } from "#app/signing.ts"
import { AppConfig, InvalidSetting, letterheadOf, publicUrlOf, requesterOf, type Settings } from "#infra/config/AppConfig.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import * as BzstConfirmations from "#infra/sources/BzstConfirmations.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as DisposableDomains from "#infra/mail/DisposableDomains.ts"
import * as Draining from "#infra/server/Draining.ts"
import * as ResilientSources from "#infra/sources/ResilientSources.ts"
import * as NodeHashing from "#infra/security/NodeHashing.ts"
import * as HttpListener from "#infra/server/HttpListener.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"
import * as SmtpMailer from "#infra/mail/SmtpMailer.ts"
import * as FileMailer from "#infra/mail/FileMailer.ts"
import * as Maintenance from "#events/store/Maintenance.ts"
import * as CommonPasswords from "#infra/security/CommonPasswords.ts"
import * as Argon2Passwords from "#infra/security/Argon2Passwords.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Protection from "#infra/postgres/Protection.ts"
import * as NodeRandomness from "#infra/security/NodeRandomness.ts"
import * as PgRateLimits from "#events/callers/PgRateLimits.ts"
import * as Readiness from "#infra/server/Readiness.ts"
import * as PdfRenderer from "#infra/pdf/PdfRenderer.ts"
import * as SourceFailover from "#infra/sources/SourceFailover.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as ProcessMetrics from "#infra/telemetry/ProcessMetrics.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"
import * as Telemetry from "#infra/telemetry/Telemetry.ts"
import * as Vies from "#infra/sources/Vies.ts"
import * as Workers from "#infra/workers/Workers.ts"
import * as WorkersAdmin from "#infra/workers/WorkersAdmin.ts"

/** The authorities' own addresses (read 2026-11). */
const liveSources = {
  viesBaseUrl: "https://ec.europa.eu/taxation_customs/vies/rest-api",
  bzstBaseUrl: "https://api.evatr.vies.bzst.de/app"
}

/** Names this replica in events and log lines. */
export const replicaOf = ({ port }: Settings) => `${hostname()}:${port}`

/** Where the sources are when the settings do not say. */
export interface DefaultSources {
  readonly viesBaseUrl: string
  readonly bzstBaseUrl: string
}

const plans = Layer.effect(
  Plans,
  Effect.map(AppConfig, ({ anonymousLifetime: lifetime, anonymousPerMinute: perMinute, plans: byName }) => ({
    byName,
    anonymous: { lifetime, perMinute }
  }))
)

/** Mails go to SMTP_URL, or into a folder without it. */
const mailer = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const path = yield* Path.Path
    return Option.match(config.smtpUrl, {
      onNone: () => FileMailer.layer({ ...letterheadOf(config), directory: path.resolve(config.dataDir, "outbox") }),
      onSome: (url) => SmtpMailer.layer({ ...letterheadOf(config), url })
    })
  })
)

/** The secrets of access tokens: JWT_SECRET, or one that is made once and kept beside the embedded database. */
const jwtSecrets = Effect.gen(function* () {
  const config = yield* AppConfig
  if (Option.isSome(config.jwtSecrets)) {
    const short = config.jwtSecrets.value.some((secret) => Redacted.value(secret).length < 32)
    if (short) yield* Effect.logWarning("JWT_SECRET has a secret of less than 32 characters: take a longer one (RFC 7518, 3.2)")
    return config.jwtSecrets.value
  }
  if (Option.isSome(config.databaseUrl)) {
    const message = "JWT_SECRET is needed with DATABASE_URL: every replica signs with the same one, of 32 characters or more"
    return yield* new InvalidSetting({ message })
  }
  const path = yield* Path.Path
  return Arr.of(yield* GeneratedSecret.make(path.resolve(config.dataDir), "jwt-secret"))
})

/** How people prove who they are. It is built first: without it nothing need start. */
const credentials = Layer.unwrap(
  Effect.gen(function* () {
    const { serviceName } = yield* AppConfig
    return Jwt.layer({ issuer: serviceName, secrets: yield* jwtSecrets })
  })
).pipe(Layer.merge(Argon2Passwords.layer.pipe(Layer.provide(NodeCrypto.layerKdf))), Layer.provide(NodeRandomness.layer))

/** How long personal documents are kept. */
const retention = Layer.effect(
  Retention,
  Effect.map(AppConfig, ({ retention }) => retention)
)

const stores = Layer.mergeAll(
  Outbox.layer(Outbox.usualPace).pipe(Layer.provide(mailer)),
  PgMetering.layer,
  SourceEvents.layer,
  AnswerCache.layerCached.pipe(Layer.provide(PgAnswerCache.layer)),
  Identity.layerCached.pipe(Layer.provide(PgIdentity.layer)),
  PgAuditors.layer,
  PgAccountStore.layer,
  PgKeyDirectory.layer,
  PgCredentials.layer,
  PgLoginLog.layer,
  RetentionJob.layer.pipe(Layer.provide(PersonalErasure.layer)),
  PgEmailTokens.layer,
  PgReceiptLinks.layer.pipe(Layer.provideMerge(PgReceipts.layer)),
  PgRateLimits.layer
).pipe(
  Layer.provideMerge(Layer.merge(EventStore.layer, PgKeyedHash.layer)),
  Layer.provideMerge(Layer.mergeAll(plans, retention, NodeHashing.layer, DisposableDomains.layer, NodeRandomness.layer))
)

/** What the operator's commands work with. */
export const operations = Layer.mergeAll(ChangePlan.layer, CloseAccount.layer, ApiKeys.layer).pipe(
  Layer.provide(Layer.merge(PgAccountStore.layer, PgKeyDirectory.layer)),
  Layer.merge(Layer.mergeAll(PgAccountDirectory.layer, PgAuditors.layer, PgUsageAudit.layer, PersonalErasure.layer)),
  Layer.provide(EventStore.layer),
  Layer.provideMerge(Layer.mergeAll(plans, NodeHashing.layer, NodeRandomness.layer)),
  Layer.provide(Database.layerExisting)
)

const sources = (defaults: DefaultSources) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const config = yield* AppConfig
      const vies = Vies.layer({ baseUrl: Option.getOrElse(config.viesBaseUrl, () => defaults.viesBaseUrl) })
      const bzst = Bzst.layer({ baseUrl: Option.getOrElse(config.bzstBaseUrl, () => defaults.bzstBaseUrl) })
      const failover = SourceFailover.layer({ requester: requesterOf(config), replica: replicaOf(config) })
      return Layer.merge(failover, BzstConfirmations.layer).pipe(
        Layer.provide(ResilientSources.layer),
        Layer.provide([vies, bzst]),
        Layer.provide(SourceHttp.layerClient)
      )
    })
  )

const useCases = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const freshness = { valid: Duration.hours(24), invalid: config.cacheTtlInvalid, stale: config.staleMaxAge }
    const names = { prefix: config.receiptPrefix, source: `${config.serviceName}-issued` }
    const validation = ValidateVatId.layer({ freshness, countries: config.confirmationCountries })
    return Layer.mergeAll(
      validation.pipe(Layer.provide(ConfirmVatId.layer(names))),
      RegisterAgent.layer(config.registrationsPerDay),
      Layer.mergeAll(SignUp.layer(config.signupsPerDay), VerifyEmail.layer, ResetPassword.layer, ChangePassword.layer).pipe(
        Layer.provide(EmailLinks.layer),
        Layer.provide(CommonPasswords.layer)
      ),
      LogIn.layer(config.loginFailuresPer15Min),
      ApiKeys.layer
    )
  })
)

/** A body may have this much; what is larger is answered with 413 and not read. */
const maxBodySize = Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16))

/** Longer than a request line can be: whether a long id or VAT ID is one is for its endpoint to say, not for the router. */
const maxParamLength = 65_536

/** What the configuration says of HTTP. */
const httpSettings = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const publicUrl = publicUrlOf(config)
    const upgradeUrl = Option.getOrElse(config.upgradeUrl, () => `${publicUrl}/plans`)
    const contact = Option.getOrNull(config.contact)
    return Layer.mergeAll(
      maxBodySize,
      Layer.succeed(Site, { serviceName: config.serviceName, publicUrl, upgradeUrl, contact }),
      Layer.succeed(AccessLog, config.logs.access),
      Layer.succeed(CorsOrigins, config.corsOrigins),
      // The library's own span would carry the path and the client's address: RequestTelemetry makes ours.
      Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
      Layer.succeed(TrustedProxies, { count: config.trustedProxies })
    )
  })
)

const http = Layer.unwrap(
  Effect.gen(function* () {
    const { host, port, shutdownDelay, shutdownGrace: grace } = yield* AppConfig
    const listening = HttpRouter.serve(Layer.merge(Routes.layer, HttpBoundary.layer), {
      disableLogger: true,
      disableListenLog: true,
      // A path is what it says (RFC 9110, 4.2.3), and what Routes knows by its template.
      routerConfig: { maxParamLength, caseSensitive: true, ignoreDuplicateSlashes: false }
    })
    return Draining.layerBeforeStop(shutdownDelay).pipe(
      Layer.provide(listening),
      Layer.provide(HttpListener.layer({ host, port, grace, refusal: unroutableResponse })),
      Layer.provide(PdfRenderer.layer)
    )
  })
).pipe(Layer.provide(httpSettings))

/** What reads the whole log: several fibers at once, and no more than that on a database that others need too. */
export const auditing = signedTree.pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide([NodeHashing.layer, NodeRandomness.layer]),
  Layer.provideMerge(Layer.unwrap(Effect.map(Database.existingUrl, (url) => Postgres.layer({ url, maxConnections: 8 }))))
)

/** The tables' owner, for what the service may not do itself. */
export const owner = Layer.unwrap(
  Effect.map(Database.existingUrl, (url) => Postgres.layerAdministrator({ url, maxConnections: 2 }))
)

/** What may complete the signed tree of a log that is adopted. */
export const adopting = signedTree.pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide([NodeHashing.layer, NodeRandomness.layer]),
  Layer.provideMerge(owner)
)

/** Everything that follows the log by itself. */
export const projections = [EventIndex.definition]

/** What follows the log by itself, and what is read from it. */
const audit = Layer.merge(notary, PgAuditTrail.layer).pipe(Layer.provide(Projections.layer(projections)))

/** Traces, metrics and logs for a collector, if there is one. */
const telemetry = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const redaction = Redaction.make(KnownSecrets.make(config))
    return Telemetry.layer(config.telemetry, { serviceName: config.serviceName, serviceVersion: interfaceVersion, redaction })
  })
)

/** The operators' port where OpenTelemetry's Prometheus exporters have theirs. */
const usualAdminPort = 9464

/** Where the pages for operators go; none where the settings want none. */
const adminAddress = (usualPort: number) =>
  Effect.map(AppConfig, ({ adminHost: host, adminPort }) => {
    const port = Option.getOrElse(adminPort, () => usualPort)
    // Nobody chose the usual port: a second replica on this machine takes the next one.
    return Option.contains(adminPort, 0) ? Option.none() : Option.some({ host, port, ports: Option.isNone(adminPort) ? 64 : 1 })
  })

const admin = (usualPort: number) =>
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

/**
 * The whole service. It listens as soon as the layer is built, and stops with it: first the requests, last the database. `adminPort` is
 * that of the operators where the settings name none; 0 takes any free one.
 */
export const service = (defaults: DefaultSources = liveSources, adminPort = usualAdminPort) =>
  Readiness.layerServing.pipe(
    Layer.provide(http),
    Layer.provide(useCases),
    Layer.provide(sources(defaults)),
    Layer.provide(Layer.mergeAll(Maintenance.layer, Protection.layer, StoreGauges.layer)),
    Layer.provide(audit),
    Layer.provide(stores),
    Layer.provide(signedTree),
    Layer.provide(Database.layer),
    Layer.provide(credentials),
    Layer.provide(admin(adminPort)),
    Layer.provide(Draining.layer(Workers.untilReplaced)),
    Layer.provide(telemetry)
  )

/** The service in several processes that share its port. An embedded database belongs to this process, so it outlives each of them. */
export const workers = (count: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { port, shutdownDelay, shutdownGrace } = yield* AppConfig
      yield* Database.databaseUrl("own")
      // Longest for what a worker has to do after its last request: pending mails, telemetry, the database.
      const patience = Duration.sum(Duration.sum(shutdownDelay, shutdownGrace), Duration.seconds(20))
      const adminPorts = new Map<number, number>()
      const address = yield* adminAddress(usualAdminPort)
      const pages = Option.map(address, (found) => WorkersAdmin.layer({ ...found, adminPorts }))
      yield* Layer.build(Option.getOrElse(pages, () => Layer.empty).pipe(Layer.provide(NodeHttpClient.layerUndici)))
      yield* Workers.run({ count, port, patience, adminPorts })
    })
  )
