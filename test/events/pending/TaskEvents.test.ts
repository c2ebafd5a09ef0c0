import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const [validations, batches] = ["/v1/validations", "/v1/batches"]
const read = (body: unknown) =>
  Schema.decodeUnknownEffect(
    Schema.Struct({ validation_id: Schema.optionalKey(Schema.String), batch_id: Schema.optionalKey(Schema.String) })
  )(body)
const idOf = ({ body }: Reply) => Effect.map(read(body), ({ batch_id = "", validation_id = batch_id }) => validation_id)

/** A final, another final and a cancelled validation, a finished and a cancelled batch of one API key. `readAll` reads them with both keys. */
const makeHistory = Effect.gen(function* () {
  const { ask, get, newKey, post } = yield* RunningService.RunningService
  const sandbox = yield* Sandbox
  const [key, foreign] = [yield* newKey, yield* newKey]
  const submitted = (vat_id: string) =>
    Effect.flatMap(post(validations, { vat_id }, { key, headers: { prefer: "respond-async, wait=20" } }), idOf)
  const [final, other] = [yield* submitted("ATU10550001"), yield* submitted("ATU10550004")]
  const batch = yield* idOf(
    yield* post(batches, { items: ["ATU10550001", "ATU10550002"].map((vat_id) => ({ custom_id: vat_id, vat_id })) }, { key })
  )
  yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
  const keyed = { key, headers: { prefer: "respond-async", "idempotency-key": "a-cancelled-validation-of-this-test" } }
  const submitCancelled = post(validations, { vat_id: "SE556000000001" }, keyed)
  const cancelled = yield* idOf(yield* submitCancelled)
  const ended = yield* idOf(
    yield* post(
      batches,
      { items: ["SE556000000002", "SE556000000003"].map((vat_id) => ({ custom_id: vat_id, vat_id })) },
      { key }
    )
  )
  yield* ask(`${validations}/${cancelled}`, { method: "DELETE", key })
  yield* post(`${batches}/${ended}/cancel`, undefined, { key })
  for (const id of [batch, ended])
    yield* Effect.repeat(get(`${batches}/${id}`, { key, query: { wait: "20" } }), {
      schedule: Schedule.spaced("100 millis"),
      until: ({ text }) => text.includes('"pending":0')
    })
  const reads = {
    final: get(`${validations}/${final}`, { key }),
    cancelled: get(`${validations}/${cancelled}`, { key }),
    replay: submitCancelled,
    list: get(validations, { key }),
    results: get(`${batches}/${batch}/results`, { key }),
    ended: get(`${batches}/${ended}/results`, { key }),
    batch: get(`${batches}/${batch}`, { key }),
    batches: get(batches, { key }),
    foreignValidation: get(`${validations}/${final}`, { key: foreign }),
    foreignList: get(validations, { key: foreign }),
    foreignBatch: get(`${batches}/${batch}`, { key: foreign }),
    foreignResults: get(`${batches}/${batch}/results`, { key: foreign })
  }
  yield* MigratedDatabase.execute("CREATE TABLE public.kept_tasks AS TABLE vatproof.tasks")
  yield* MigratedDatabase.execute("CREATE TABLE public.kept_batches AS TABLE vatproof.batches")
  yield* MigratedDatabase.execute("CREATE TABLE public.kept_listed AS TABLE vatproof.listed")
  return { final, other, cancelled, batch, ended, reads }
})

class History extends Context.Service<History, Effect.Success<typeof makeHistory>>()("vatproof/test/History") {}

const restore = Effect.forEach(["tasks", "batches", "listed"], (table) =>
  MigratedDatabase.execute(
    `DO $$ BEGIN DELETE FROM vatproof.${table}; INSERT INTO vatproof.${table} TABLE public.kept_${table}; END $$`
  )
)

type Ids = Pick<typeof History.Service, "final" | "other" | "cancelled" | "batch" | "ended">
type Read = keyof (typeof History.Service)["reads"]

const foreignKey = "key_id = (SELECT key_id FROM vatproof.api_keys ORDER BY issued_at DESC LIMIT 1)"
const taskOf = (id: string) => `task_id = '${id}'`
const closingOf = (id: string) => `(SELECT closed_by FROM public.kept_tasks WHERE ${taskOf(id)})`

/** Changes by a superuser, with the reads that must respond with EVIDENCE_ALTERED. */
const forgeries: ReadonlyArray<readonly [name: string, refused: ReadonlyArray<Read>, change: (ids: Ids) => string]> = [
  [
    "a cancelled validation that is closed by the answer about another VAT ID",
    ["cancelled", "replay", "list"],
    ({ cancelled, other }) =>
      `UPDATE vatproof.tasks SET state = 'final', closed_by = ${closingOf(other)} WHERE ${taskOf(cancelled)}`
  ],
  [
    "a validation that is closed by another answer about its VAT ID",
    ["final", "list"],
    ({ batch, final }) =>
      `UPDATE vatproof.tasks SET closed_by = (SELECT closed_by FROM public.kept_tasks WHERE batch_id = '${batch}' AND item = 0) WHERE ${taskOf(final)}`
  ],
  [
    "an answered validation in the state cancelled",
    ["final", "list"],
    ({ final }) => `UPDATE vatproof.tasks SET state = 'cancelled' WHERE ${taskOf(final)}`
  ],
  [
    "an answered validation that is closed by the cancellation of another one",
    ["final", "list"],
    ({ cancelled, final }) =>
      `UPDATE vatproof.tasks SET state = 'cancelled', closed_by = ${closingOf(cancelled)} WHERE ${taskOf(final)}`
  ],
  [
    "a validation with another VAT ID",
    ["final", "list"],
    ({ final }) => `UPDATE vatproof.tasks SET vat_id = 'ATU10550004' WHERE ${taskOf(final)}`
  ],
  [
    "a validation with another time of acceptance",
    ["final", "list"],
    ({ final }) => `UPDATE vatproof.tasks SET accepted_at = accepted_at - interval '1 day' WHERE ${taskOf(final)}`
  ],
  [
    "a validation that belongs to another key",
    ["foreignValidation", "foreignList"],
    ({ final }) => `UPDATE vatproof.tasks SET ${foreignKey} WHERE ${taskOf(final)}`
  ],
  [
    "a validation that was accepted by the event of another one",
    ["final", "list"],
    ({ final, other }) =>
      `UPDATE vatproof.tasks SET position = (SELECT position FROM public.kept_tasks WHERE ${taskOf(other)}) WHERE ${taskOf(final)}`
  ],
  [
    "a validation that is closed by an event that does not exist",
    ["final", "list"],
    ({ final }) => `UPDATE vatproof.tasks SET closed_by = 100000 WHERE ${taskOf(final)}`
  ],
  [
    "an item that is closed by the answer to another item",
    ["results"],
    ({ batch }) =>
      `UPDATE vatproof.tasks t SET closed_by = k.closed_by FROM public.kept_tasks k WHERE k.batch_id = '${batch}' AND t.batch_id = '${batch}' AND k.item = 1 - t.item`
  ],
  [
    "an item that is closed by the answer to a validation of the same VAT ID",
    ["results"],
    ({ batch, final }) => `UPDATE vatproof.tasks SET closed_by = ${closingOf(final)} WHERE batch_id = '${batch}' AND item = 0`
  ],
  [
    "an answered item in the state expired",
    ["results"],
    ({ batch }) => `UPDATE vatproof.tasks SET state = 'expired' WHERE batch_id = '${batch}' AND item = 0`
  ],
  [
    "an answered item that is closed by the cancellation of another batch",
    ["results"],
    ({ batch, ended }) =>
      `UPDATE vatproof.tasks SET state = 'cancelled', closed_by = (SELECT closed_by FROM public.kept_tasks WHERE batch_id = '${ended}' AND item = 0) WHERE batch_id = '${batch}' AND item = 0`
  ],
  [
    "a cancelled item in the state final",
    ["ended"],
    ({ ended }) => `UPDATE vatproof.tasks SET state = 'final' WHERE batch_id = '${ended}' AND item = 1`
  ],
  [
    "an item that was moved to another batch",
    ["results"],
    ({ batch, ended }) => `UPDATE vatproof.tasks SET batch_id = '${ended}', item = 7 WHERE batch_id = '${batch}' AND item = 0`
  ],
  [
    "a list with the chunk of another batch",
    ["results"],
    ({ batch, ended }) =>
      `UPDATE vatproof.listed l SET position = o.position FROM public.kept_listed o WHERE l.list = 'batch-${batch}' AND o.list = 'batch-${ended}'`
  ],
  [
    "a list with an event that is no chunk",
    ["results"],
    ({ batch }) => `UPDATE vatproof.listed SET position = 0 WHERE list = 'batch-${batch}'`
  ],
  [
    "a batch that belongs to another key",
    ["foreignBatch", "foreignResults"],
    ({ batch }) => `UPDATE vatproof.batches SET ${foreignKey} WHERE batch_id = '${batch}'`
  ],
  [
    "a batch in the state cancelled without its cancellation",
    ["batch", "batches", "results"],
    ({ batch, ended }) =>
      `UPDATE vatproof.batches b SET cancelled_by = k.cancelled_by FROM public.kept_batches k WHERE b.batch_id = '${batch}' AND k.batch_id = '${ended}'`
  ]
]

layer(Layer.effect(History, makeHistory).pipe(Layer.provideMerge(RunningService.layer())), { excludeTestServices: true })(
  "a service whose tasks a superuser changed",
  (it) => {
    it.effect("shows tasks that agree with their events", function* () {
      const { reads } = yield* History
      const statuses = yield* Effect.forEach(Object.values(reads), (reply) => Effect.map(reply, ({ status }) => status))
      assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 404, 200, 404, 404])
    })

    it.effect.each(forgeries)("responds with EVIDENCE_ALTERED to %s", function* ([_, refused, change]) {
      const { reads, ...ids } = yield* History
      yield* MigratedDatabase.execute(change(ids))
      const codes = yield* Effect.forEach(refused, (name) =>
        Effect.map(reads[name], ({ text }) => [name, /EVIDENCE_ALTERED/u.test(text)])
      )
      yield* restore
      assert.deepStrictEqual(
        codes,
        refused.map((name) => [name, true])
      )
    })
  }
)
