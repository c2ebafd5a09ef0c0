/** The layers that operator commands use. */
import { Effect, Layer } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { plans } from "#app/layers/Plans.ts"
import { mailFolder } from "#app/layers/Storage.ts"
import { signedTree } from "#app/layers/SignedLog.ts"
import { ChangePlan } from "#domain/accounts/ChangePlan.ts"
import { CloseAccount } from "#domain/accounts/CloseAccount.ts"
import { RevokeApiKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { AccountDirectory } from "#events/accounts/AccountDirectory.ts"
import * as PgAccountStore from "#events/accounts/PgAccountStore.ts"
import * as PgAuditors from "#events/audit/PgAuditors.ts"
import { UsageAudit } from "#events/callers/UsageAudit.ts"
import { ClosedAccountMails } from "#events/accounts/ClosedAccountMails.ts"
import { PersonalErasure } from "#events/audit/PersonalErasure.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogOpening from "#events/log/store/LogOpening.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** Refuses a log without events, in commands. */
const openedLog = LogOpening.layerExisting.pipe(Layer.provide(EventStore.layer), Layer.provide(NodeCrypto.layer))

/** The services of commands that read and change accounts, keys, auditors and personal data. */
export const operations = Layer.mergeAll(ChangePlan.layer, CloseAccount.layer, RevokeApiKey.layer).pipe(
  Layer.provide(PgAccountStore.layer),
  Layer.merge(Layer.mergeAll(AccountDirectory.layer, PgAuditors.layer, UsageAudit.layer, PersonalErasure.layer)),
  Layer.merge(ClosedAccountMails.layer.pipe(Layer.provide(mailFolder))),
  Layer.provideMerge(EventStore.layer),
  Layer.provideMerge(Layer.mergeAll(plans, NodeCrypto.layer)),
  Layer.provide(openedLog),
  Layer.provide(Database.layerExisting)
)

/**
 * The services of commands that read the whole log. A command uses at most 8 database connections, because the running service needs
 * connections too.
 */
export const auditing = Layer.merge(signedTree, logCatalogue).pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide(NodeCrypto.layer),
  Layer.provide(openedLog),
  Layer.provideMerge(Layer.unwrap(Effect.map(Database.existingUrl, (url) => Postgres.layer({ url, maxConnections: 8 }))))
)

/** Database connections with the rights of the tables' owner, for changes that the service's database role may not make. */
export const owner = Layer.unwrap(
  Effect.map(Database.existingUrl, (url) => Postgres.layerAdministrator({ url, maxConnections: 2 }))
).pipe(Layer.merge(logCatalogue))

/** The services of `vatproof projections rebuild`, which records its changes. */
export const rebuilding = EventStore.layer.pipe(
  Layer.provide(NodeCrypto.layer),
  Layer.provide(openedLog),
  Layer.provideMerge(owner)
)

/** The services of `vatproof notary adopt`, which stores the missing parts of the log's signed tree. */
export const adopting = signedTree.pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide(NodeCrypto.layer),
  Layer.provideMerge(owner)
)
