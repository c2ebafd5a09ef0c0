/**
 * Restarts and crashes the database under load. Every response must be correct and recorded exactly once. The load is small, to keep
 * the test fast.
 */
import { Effect, Fiber, FileSystem, Layer, Redacted, Ref, Schedule, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

/** Starts an embedded Postgres server that the test can kill. The server is restarted automatically, as in a service. */
const ownServer = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const dir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" })
  const { url } = yield* EmbeddedPostgres.make({ dir, flags: ["-c", "fsync=off"] })
  const signal = (name: "SIGINT" | "SIGKILL") =>
    Effect.sync(() => {
      const pid = Number(readFileSync(join(dir, "cluster/data/postmaster.pid"), "utf8").split("\n", 1)[0])
      process.kill(pid, name)
      return pid
    })
  return { url, signal }
})

const callers = 24
/** Valid and invalid VAT IDs, to detect mixed-up answers. */
const vatIds = Array.from({ length: 40 }, (_, index) =>
  vatIdEnding(index % 2 === 0 ? "EE" : "HR", index % 4 === 0 ? "999200" : `49${1000 + index}`)
)
const isValid = (vatId: string) => !vatId.endsWith("999200")

interface Exchange {
  readonly id: string
  readonly vatId: string
  readonly reply: Reply
}

const numbers = Effect.fnUntraced(function* (statement: string) {
  return new Map(
    (yield* Rows.all({ key: Schema.String, value: Schema.BigInt }, (sql) => sql.unsafe(statement))).map(({ key, value }) => [
      key,
      Number(value)
    ])
  )
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })(
  "a service under load whose database restarts and crashes",
  (it) => {
    it.effect("gives no wrong answer, and records each answer exactly once", function* () {
      const server = yield* ownServer
      const service = yield* RunningService.start({ DATABASE_URL: Redacted.value(server.url) })
      const key = yield* service.newKey
      const exchanges = yield* Ref.make<ReadonlyArray<Exchange>>([])
      const done = yield* Ref.make(false)

      const ask = Effect.fnUntraced(function* (caller: number, request: number) {
        const id = `load-${caller}-${request}`
        const vatId = vatIds[(caller * 7 + request) % vatIds.length] ?? ""
        const query: Record<string, string> = request % 5 === 0 ? { force_live: "1" } : {}
        const reply = yield* service.validate(vatId, { key, query, headers: { "x-request-id": id } })
        yield* Ref.update(exchanges, (before) => [...before, { id, vatId, reply }])
      })
      const caller = Effect.fnUntraced(function* (number: number) {
        let request = 0
        while (!(yield* Ref.get(done))) yield* ask(number, (request += 1))
      })
      const answered = (count: number) =>
        Ref.get(exchanges).pipe(
          Effect.map((all) => all.filter(({ reply }) => reply.status === 200).length),
          Effect.repeat({ until: (ok) => ok >= count, schedule: Schedule.spaced("20 millis") })
        )
      const load = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: callers }, (_, index) => index),
          caller,
          { concurrency: "unbounded", discard: true }
        )
      )
      for (const signal of ["SIGINT", "SIGKILL"] as const) {
        const before = yield* answered(200)
        yield* server.signal(signal)
        yield* answered(before + 400)
      }
      yield* Ref.set(done, true)
      yield* Fiber.join(load)

      const replies = yield* Ref.get(exchanges)
      for (const { reply, vatId } of replies) {
        if (reply.status === 200) {
          assert.containSubset(reply.body, { vat_id: vatId, valid: isValid(vatId) })
        } else {
          assertProblem(reply, "SERVICE_UNAVAILABLE")
          assert.isDefined(reply.headers["retry-after"])
        }
      }
      yield* checkLog(replies).pipe(
        Effect.provide(Layer.fresh(Postgres.layerAdministrator({ url: server.url, maxConnections: 1 })))
      )
    })
  }
)

const checkLog = Effect.fnUntraced(function* (replies: ReadonlyArray<Exchange>) {
  const recorded = yield* numbers(`SELECT metadata::jsonb ->> 'request_id' AS key, count(*) AS value FROM vatproof.events
    WHERE type = 'VatIdVerified' GROUP BY 1`)
  for (const { id, reply } of replies) {
    if (reply.status === 200) assert.strictEqual(recorded.get(id), 1, id)
    else assert.isAtMost(recorded.get(id) ?? 0, 1, id)
  }
  const log = yield* numbers(`SELECT 'head' AS key, next_position AS value FROM vatproof.logs UNION ALL
    SELECT 'events', count(*) FROM vatproof.events UNION ALL
    SELECT 'charged', sum(units)::bigint FROM vatproof.events WHERE meter_id LIKE 'key-%' UNION ALL
    SELECT 'used', sum(used)::bigint FROM vatproof.meters WHERE meter_id LIKE 'key-%'`)
  assert.strictEqual(log.get("events"), log.get("head"))
  assert.strictEqual(log.get("used"), log.get("charged"))
})
