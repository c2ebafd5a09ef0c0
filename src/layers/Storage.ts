/** The event store, the services that store data in Postgres, the outbox, and the projections. */
import { Effect, Layer, Option, Path } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { plans } from "#app/layers/Plans.ts"
import { notary } from "#app/layers/SignedLog.ts"
import * as Identity from "#domain/callers/Identity.ts"
import { Retention } from "#domain/log/Retention.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import * as AnswerCache from "#domain/vat/AnswerCache.ts"
import * as PgAccountStore from "#events/accounts/PgAccountStore.ts"
import * as PgCredentials from "#events/accounts/PgCredentials.ts"
import * as PgEmailLinks from "#events/accounts/PgEmailLinks.ts"
import * as PgApiKeyList from "#events/accounts/PgApiKeyList.ts"
import * as PgLoginLog from "#events/accounts/PgLoginLog.ts"
import * as PgAnswerCache from "#events/vat/PgAnswerCache.ts"
import * as PgReceiptLinks from "#events/receipts/PgReceiptLinks.ts"
import * as ReceiptRetention from "#events/receipts/ReceiptRetention.ts"
import * as PgReceipts from "#events/receipts/PgReceipts.ts"
import * as PgAuditTrail from "#events/audit/PgAuditTrail.ts"
import * as PgAuditors from "#events/audit/PgAuditors.ts"
import * as PgIdentity from "#events/callers/PgIdentity.ts"
import * as PgKeyedHash from "#events/callers/PgKeyedHash.ts"
import * as PgMetering from "#events/callers/PgMetering.ts"
import * as PgRateLimiter from "#events/callers/PgRateLimiter.ts"
import { ClosedAccountMails } from "#events/accounts/ClosedAccountMails.ts"
import { Outbox } from "#events/accounts/Outbox.ts"
import * as PgBatchSpool from "#events/pending/PgBatchSpool.ts"
import * as PgBatchStore from "#events/pending/PgBatchStore.ts"
import * as PgTaskQueue from "#events/pending/PgTaskQueue.ts"
import * as PgUpdateReader from "#events/pending/PgUpdateReader.ts"
import * as PgValidationReader from "#events/pending/PgValidationReader.ts"
import * as RetentionJob from "#events/log/personal/RetentionJob.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogOpening from "#events/log/store/LogOpening.ts"
import * as PgSourceHistory from "#events/vat/PgSourceHistory.ts"
import * as SourceEvents from "#events/vat/SourceEvents.ts"
import * as SourceHours from "#events/vat/SourceHours.ts"
import { AppConfig, mailOptionsOf } from "#infra/config/AppConfig.ts"
import * as DisposableDomains from "#infra/mail/DisposableDomains.ts"
import * as FileMailer from "#infra/mail/FileMailer.ts"
import * as SmtpMailer from "#infra/mail/SmtpMailer.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** The folder of mails on this machine. */
export const mailFolder = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir } = yield* AppConfig
    return FileMailer.layerFolder((yield* Path.Path).resolve(dataDir, "outbox"))
  })
)

/** Sends mails through the server of SMTP_URL. Without this setting, writes the mails to a folder. */
const mailer = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const path = yield* Path.Path
    return Option.match(config.smtpUrl, {
      onNone: () => FileMailer.layer({ ...mailOptionsOf(config), directory: path.resolve(config.dataDir, "outbox") }),
      onSome: (url) => SmtpMailer.layer({ ...mailOptionsOf(config), url })
    })
  })
)

/** The retention periods of personal documents from the settings. */
const retention = Layer.effect(
  Retention,
  Effect.map(AppConfig, ({ retention }) => retention)
)

/** Opens the log before any other event is appended or signed. */
export const opened = Layer.unwrap(Effect.map(AppConfig, ({ purpose }) => LogOpening.layer(purpose))).pipe(
  Layer.provide(EventStore.layer),
  Layer.provide(NodeCrypto.layer)
)

export const stores = Layer.mergeAll(
  PgEmailLinks.layer.pipe(Layer.provide(Outbox.layer()), Layer.provide(mailer)),
  PgMetering.layer,
  SourceEvents.layer,
  AnswerCache.layerCached.pipe(Layer.provide(PgAnswerCache.layer)),
  Identity.layerCached.pipe(Layer.provide(PgIdentity.layer)),
  PgAuditors.layer,
  PgAccountStore.layer,
  PgApiKeyList.layer,
  PgCredentials.layer,
  PgLoginLog.layer,
  ClosedAccountMails.layerRepeated.pipe(Layer.provide(mailFolder)),
  RetentionJob.layer(ReceiptRetention.mayErase),
  PgReceiptLinks.layer.pipe(Layer.provideMerge(PgReceipts.layer)),
  PgRateLimiter.layer,
  Layer.mergeAll(
    PgBatchSpool.layer,
    PgBatchStore.layer,
    PgTaskQueue.layer,
    PgUpdateReader.layer,
    PgValidationReader.layer,
    TaskSignals.layer
  )
).pipe(
  Layer.provideMerge(Layer.merge(EventStore.layer, PgKeyedHash.layer)),
  Layer.provideMerge(Layer.mergeAll(plans, retention, DisposableDomains.layer, NodeCrypto.layer))
)

/** The definitions of all asynchronous projections. */
export const projections = [EventIndex.definition, SourceHours.definition]

/** The notary, the asynchronous projections, and their readers: the audit trail and the history of the sources. */
export const audit = Layer.mergeAll(notary, PgAuditTrail.layer, PgSourceHistory.layer).pipe(
  Layer.provide(Projections.layer(projections)),
  Layer.provide(logCatalogue)
)
