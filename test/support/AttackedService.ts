/**
 * A database with a signed history of a service, and copies of it to attack. `examine` attacks a copy beside a running service, and
 * asks each part of the program that must notice attacks.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Deferred, Duration, Effect, Layer, Logger, Schedule, Schema } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import * as Scrubber from "#events/audit/Scrubber.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import * as Protection from "#infra/postgres/Protection.ts"
import { checkpointOf, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { texts } from "#test/support/Batches.ts"
import { command } from "#test/support/CommandLine.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import { keysOf, signer } from "#test/support/log/Keys.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as PaidKey from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** The names of the reads that `examine` makes. */
export const reads = ["receipt", "validation", "cancelled", "batch", "search"] as const
type Read = (typeof reads)[number]

/** What each part of the program says about a database. `reads` has "served", or the code of the error. */
export interface Notices {
  readonly verify: string
  readonly fast: string
  readonly scrub: string
  readonly start: string
  readonly reads: Readonly<Record<Read, string>>
}

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))
const decodeValidation = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const decodeError = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.Struct({ code: Schema.String }) }))

const later = { prefer: "respond-async" }

/**
 * Makes the history: an account with a paid plan, a receipt, an answered validation, a cancelled one, a batch of three items, a
 * revoked key, and an auditor. Returns the requests of the reads.
 */
const live = Effect.gen(function* () {
  const service = yield* RunningService.start(signing(yield* temporaryFolder))
  const registered = yield* service.post("/v1/register", { agent_id: "the attacked" })
  const { api_key: key } = yield* decodeKey(registered.body)
  yield* command("account", "plan", "the attacked", "business", "--reason", "contract", "--by", "test")
  const receiptId = yield* PaidKey.receiptIdOf(yield* PaidKey.confirm(service, "DE123456789", key))
  const submit = (vatId: string) =>
    service.post("/v1/validations", { vat_id: vatId }, { key, headers: later }).pipe(
      Effect.flatMap(({ body }) => decodeValidation(body)),
      Effect.map(({ validation_id }) => `/v1/validations/${validation_id}`)
    )
  const validation = yield* submit("ATU10550001")
  const sandbox = yield* Sandbox
  yield* sandbox.configure({ vies_unavailable_member_states: ["FI"] })
  const cancelled = yield* submit("FI10550001")
  yield* service.ask(cancelled, { method: "DELETE", key })
  yield* sandbox.configure({ vies_unavailable_member_states: [] })
  const items = ["ATU10550001", "EL105500010", "EL105500010"].map((vat_id, index) => ({ custom_id: `item-${index}`, vat_id }))
  const { batch_id } = yield* decodeBatch((yield* service.post("/v1/batches", { items }, { key })).body)
  const batchPath = `/v1/batches/${batch_id}`
  yield* Effect.repeat(service.get(batchPath, { key, query: { wait: "20" } }), {
    until: ({ text }) => text.includes('"finished"'),
    schedule: Schedule.spaced("50 millis")
  }).pipe(Effect.timeout("30 seconds"))
  const revoked = yield* service.newKey
  yield* service.ask("/v1/keys/self", { method: "DELETE", key: revoked })
  const { headers } = yield* newAuditor()
  const search = { path: "/v1/audit/events", more: { headers, query: { type: "ApiKeyRevoked" } } }
  // The search moves the index of the events to the head of the log.
  yield* service.get(search.path, search.more)
  const [size = "0"] = yield* texts("SELECT next_position::text AS text FROM vatproof.logs")
  yield* checkpointOf(service, Number(size))
  const own = { key }
  const requests: Readonly<Record<Read, { readonly path: string; readonly more: object }>> = {
    receipt: { path: `${PaidKey.receiptsPath}/${receiptId}`, more: own },
    validation: { path: validation, more: own },
    cancelled: { path: cancelled, more: own },
    batch: { path: `${batchPath}/results`, more: own },
    search
  }
  return {
    requests,
    ids: { receiptId, validation: validation.slice(-36), cancelled: cancelled.slice(-36), batch: batch_id, key }
  }
})

const history = Effect.gen(function* () {
  const { name } = yield* TestDatabase.TestDatabase
  const made = yield* Effect.provide(Effect.scoped(live), TestDatabase.client, { local: true })
  return { name, ...made }
})

/** `name` is the database with the history, which nobody changes; `ids` has the ids of the history. */
export class AttackedService extends Context.Service<AttackedService, Effect.Success<typeof history>>()(
  "vatproof/test/AttackedService"
) {}

export const layer = Layer.effect(AttackedService, history).pipe(
  Layer.provide(TestDatabase.layer),
  Layer.provideMerge(Layer.mergeAll(RunningService.layerOutside, logCatalogue, NodeServices.layer))
)

const audit = Effect.fnUntraced(function* (isFast: boolean) {
  const schema = yield* SchemaOfProgram.comparison
  const report = yield* DatabaseAudit.run({ verifiers: [signer], kept: [], schema, isFast, progress: () => Effect.void })
  return report.findings.map(({ message, position }) => `${position ?? "-"}: ${message}`).join("\n")
})

const pace = { tiles: 8, every: Duration.zero, rest: Duration.hours(1) }

const scrub = Effect.gen(function* () {
  const found: Array<string> = []
  const reportAltered = (_: unknown, finding: string) => Effect.sync(() => void found.push(finding))
  const pass = Effect.flatten(Scrubber.makePass(pace, yield* SchemaOfProgram.comparison))
  yield* Effect.provideService(pass, Integrity, { ...(yield* Integrity), reportAltered })
  return found.join("\n")
})

const notary = Notary.layerOnceKnown({ keys: keysOf(signer), loadSeen: Effect.succeed([]), saveSeen: () => Effect.void })

/** Returns what a start logs: the missing protections, and why the notary refuses the log. */
const start = Effect.gen(function* () {
  const written: Array<string> = []
  const refused = yield* Deferred.make<void>()
  const keep = Logger.make(({ message }) => {
    written.push(String(message))
    if (String(message).includes("does not start")) Deferred.doneUnsafe(refused, Effect.void)
  })
  const started = Layer.build(Layer.fresh(Layer.merge(Protection.layer, notary)))
  yield* Effect.scoped(Effect.raceFirst(started, Deferred.await(refused))).pipe(Effect.provide(Logger.layer([keep])))
  return written.join("\n")
})

const codeOf = ({ body, status }: Reply) => {
  if (status < 400) return "served"
  const error = decodeError(body)
  return error._tag === "Some" ? error.value.error.code : String(status)
}

const examined = Effect.fnUntraced(function* (statements: ReadonlyArray<string>) {
  const { requests } = yield* AttackedService
  // A folder of its own, because each copy of the log continues with other checkpoints.
  const service = yield* RunningService.start(signing(yield* temporaryFolder))
  yield* tamper(...statements)
  const readOf = (read: Read) => Effect.map(service.get(requests[read].path, requests[read].more), codeOf)
  const codes = yield* Effect.all({
    receipt: readOf("receipt"),
    validation: readOf("validation"),
    cancelled: readOf("cancelled"),
    batch: readOf("batch"),
    search: readOf("search")
  })
  yield* service.stop
  yield* MigratedDatabase.execute("UPDATE vatproof.scrubs SET held_until = '-infinity', position = 0")
  const parts = Effect.all({ verify: audit(false), fast: audit(true), scrub, start })
  const said = yield* Effect.provide(parts, SignedLog.groundOn, { local: true })
  return { ...said, reads: codes } satisfies Notices
})

/**
 * Runs the statements as a superuser on a copy of the database, with all guards off, and restores the guards. Returns what the
 * verification, the scrubber, a start of the service and its reads say about the copy.
 */
export const examine = Effect.fnUntraced(function* (statements: ReadonlyArray<string>) {
  const { name } = yield* AttackedService
  return yield* Effect.provide(Effect.scoped(examined(statements)), TestDatabase.layerCopy(name), { local: true })
})
