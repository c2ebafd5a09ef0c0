/** A new database with all migrations, a connection pool like the service's, and the event store on this pool. */
import { Effect, Layer } from "effect"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogOpening from "#events/log/store/LogOpening.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** Runs an effect as the administrator, with a pool of its own: for operators' actions, and for attacks beyond the rights of the service's role. */
export const asAdministrator = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestDatabase.TestDatabase, ({ url }) =>
    Effect.provide(effect, Postgres.layerAdministrator({ url, maxConnections: 4 }), { local: true })
  )

/** Runs a statement as the administrator. */
export const execute = (statement: string) =>
  Effect.flatMap(TestDatabase.TestDatabase, ({ administrator }) =>
    Effect.flatMap(administrator, (sql) => sql.unsafe(statement).unprepared)
  )

/** Runs an effect while a transaction of the administrator holds the locks of a statement. */
export const whileLocked = <A, E, R>(statement: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* (yield* TestDatabase.TestDatabase).administrator
    return yield* sql.withTransaction(Effect.andThen(sql.unsafe(statement).unprepared, effect))
  })

/** Opens the log, as the first service does. Commands refuse a log without events. */
export const openLog = Effect.scoped(
  Layer.build(LogOpening.layer("live").pipe(Layer.provide(EventStore.layer), Layer.provide(NodeCrypto.layer)))
)

/** The pool and the event store on a given database. */
export const layerOn = EventStore.layer.pipe(
  Layer.provide(NodeCrypto.layer),
  Layer.provideMerge(Layer.unwrap(Effect.map(TestDatabase.TestDatabase, ({ url }) => Postgres.layer({ url, maxConnections: 8 }))))
)

export const layer = layerOn.pipe(Layer.provideMerge(TestDatabase.layer))
