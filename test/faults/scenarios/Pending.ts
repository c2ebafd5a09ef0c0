/** Pending validations and the items of a batch survive kills of workers, replicas and Postgres, and outages of the sources. */
import { Effect, Exit, Fiber, MutableRef, Random, type Redacted, Schedule, Schema, Scope } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import { freePort } from "#test/support/RunningService.ts"

const tasks = 600
/** Number of items of the batch. They are stored in three chunks, so that kills also interrupt their storage. */
const items = 1_500
const kills = 30
const memberStates = ["AT", "SE", "EE"]

/** Starts a replica that can be killed and restarted on the same port. */
const makeReplica = Effect.fnUntraced(function* (url: Redacted.Redacted, flags: ReadonlyArray<string>) {
  const settings = { PORT: String(yield* freePort), ADMIN_PORT: "0" }
  const start = Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const replica = yield* Scope.provide(Scenario.replica(url, settings, flags), scope)
    return { ...replica, close: Scope.close(scope, Exit.void) }
  })
  let running = yield* start
  const restart = Effect.gen(function* () {
    yield* running.signal("SIGKILL")
    yield* running.close
    running = yield* start
  })
  return { restart, replica: () => running }
})

/** Finds the process id of a running worker in the output of the service. */
const workerOf = (output: string) => {
  const newest = new Map([...output.matchAll(/Worker (\d+) is process (\d+)/gu)].map(([, worker, pid]) => [worker, Number(pid)]))
  return [...newest.values()][0]
}

const vatIdOf = (index: number) => {
  const memberState = memberStates[index % memberStates.length]
  const number = String(1000 + index)
  return memberState === "AT"
    ? `ATU2000${number}`
    : memberState === "SE"
      ? `SE55600000${number}`.slice(0, 14)
      : `EE10000${number}`
}

/** The items of the batch. No single validation has their VAT IDs. */
const batch = {
  items: Array.from({ length: items }, (_, index) => ({ custom_id: `${index}`, vat_id: vatIdOf(tasks + index) }))
}

const decodeBatch = Schema.decodeUnknownEffect(
  Schema.Struct({ batch_id: Schema.String, status: Schema.String, counts: Schema.Struct({ final: Schema.Int }) })
)
const decodeId = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))

const Counted = Schema.Struct({
  accepted: Schema.Int,
  pending: Schema.Int,
  final: Schema.Int,
  once: Schema.Int,
  units: Schema.Int
})

/** Counts all tasks by state, and the tasks with exactly one event and one charge. */
const count = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const find = Effect.flatMap(SqlClient.SqlClient, (sql) =>
    SqlSchema.findOne({
      Request: Schema.Void,
      Result: Counted,
      execute: () => sql`SELECT count(*)::int AS accepted, count(*) FILTER (WHERE t.state = 'pending')::int AS pending,
          count(*) FILTER (WHERE t.state = 'final')::int AS final, count(*) FILTER (WHERE e.events = 1 AND e.units = 1)::int AS once,
          (SELECT coalesce(sum(used), 0) FROM vatproof.meters)::int AS units
        FROM vatproof.tasks t LEFT JOIN (SELECT causation_id, count(*) AS events, sum(units) AS units FROM vatproof.events
          WHERE causation_id IS NOT NULL GROUP BY 1) e ON e.causation_id = t.task_id`
    })(undefined)
  )
  return yield* find.pipe(Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true }))
})

/** Makes all open tasks due now. Due times are not part of the log, so an audit does not report the change. */
const makeDue = (url: Redacted.Redacted) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE vatproof.tasks SET due_at = now() WHERE closed_by IS NULL AND claim IS NULL`
  ).pipe(Effect.provide(Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true }))

const retrySchedule = Schedule.spaced("200 millis")

export const pending = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const sandbox = yield* Sandbox
  const single = yield* makeReplica(server.url, [])
  const workers = yield* makeReplica(server.url, ["--workers", "2"])
  const key = yield* single.replica().newKey
  const killed = { replica: 0, worker: 0, postgres: 0 }
  const defects = MutableRef.make(0)
  /** Counts the responses with status 500, which a client repeats like any other failure. */
  const noted = ({ status }: { readonly status: number }) => Effect.sync(() => status === 500 && MutableRef.increment(defects))

  // The client retries failed requests, which the idempotency key makes safe.
  const submit = (index: number) =>
    Effect.suspend(() =>
      (index % 2 === 0 ? single : workers).replica().post(
        "/v1/validations",
        { vat_id: vatIdOf(index) },
        {
          key,
          headers: { prefer: "respond-async", "idempotency-key": `task ${index}` }
        }
      )
    ).pipe(
      Effect.tap(noted),
      Effect.filterOrFail(({ status }) => status === 200 || status === 202),
      Effect.retry(retrySchedule),
      Effect.flatMap(({ body }) => decodeId(body)),
      Effect.map(({ validation_id }) => validation_id)
    )

  const submitBatch = Effect.suspend(() =>
    workers.replica().post("/v1/batches", batch, { key, headers: { "idempotency-key": "the list" } })
  ).pipe(
    Effect.tap(noted),
    Effect.filterOrFail(({ status }) => status === 202),
    Effect.retry(retrySchedule),
    Effect.flatMap(({ body }) => decodeBatch(body)),
    Effect.map(({ batch_id }) => batch_id)
  )

  const failSources = Effect.gen(function* () {
    const down = yield* Effect.filter(memberStates, () => Random.nextBoolean)
    yield* sandbox.configure({ vies_unavailable_member_states: down, latency_ms: 200 })
  })

  const killOne = Effect.gen(function* () {
    switch (yield* Random.nextIntBetween(0, 3)) {
      case 0:
        killed.replica += 1
        return yield* single.restart
      case 1: {
        killed.worker += 1
        const pid = workerOf(yield* workers.replica().output)
        return yield* Effect.try(() => pid !== undefined && process.kill(pid, "SIGKILL")).pipe(Effect.ignore)
      }
      default:
        killed.postgres += 1
        yield* server.stop("immediate")
        return yield* server.start
    }
  })

  const sources = yield* Effect.forkScoped(Effect.repeat(failSources, Schedule.spaced("3 seconds")))
  const all = Array.from({ length: tasks }, (_, index) => index)
  const submitting = yield* Effect.forkScoped(Effect.forEach(all, submit, { concurrency: 16 }))
  const submittingBatch = yield* Effect.forkScoped(submitBatch)
  yield* Effect.delay(killOne, "1 second").pipe(Effect.repeat({ times: kills - 1 }))
  const ids = yield* Fiber.join(submitting)
  const batchId = yield* Fiber.join(submittingBatch)
  yield* Fiber.interrupt(sources)
  yield* sandbox.configure({ vies_unavailable_member_states: [], latency_ms: 0 })
  const settled = yield* Effect.andThen(makeDue(server.url), count(server.url)).pipe(
    Effect.repeat({
      schedule: Schedule.spaced("1 second"),
      until: ({ accepted, pending }) => pending === 0 && accepted === tasks + items
    }),
    Effect.timeout("60 seconds")
  )
  const list = yield* Effect.flatMap(workers.replica().get(`/v1/batches/${batchId}`, { key }), ({ body }) => decodeBatch(body))
  const distinct = new Set(ids).size
  const trial: Scenario.Trial = {
    notes: [
      `${kills} kills: ${killed.replica} of a replica, ${killed.worker} of a worker, ${killed.postgres} of Postgres`,
      `${settled.accepted} validations accepted, ${settled.final} final, ${settled.units} units charged`
    ],
    claims: [
      {
        statement: `each of ${tasks} submissions has its own validation (${distinct} ids)`,
        holds: distinct === tasks && settled.accepted === tasks + items
      },
      {
        statement: `the batch is finished with an answer for each of ${items} items (${list.status}, ${list.counts.final})`,
        holds: list.status === "finished" && list.counts.final === items
      },
      { statement: `every validation is final (${settled.pending} pending)`, holds: settled.final === tasks + items },
      {
        statement: `every validation has exactly one charged event (${settled.once})`,
        holds: settled.once === tasks + items && settled.units === tasks + items
      },
      { statement: `no response is a 500 (${defects.current} were)`, holds: defects.current === 0 },
      yield* Scenario.audit(server.url)
    ]
  }
  return trial
})
