import { Effect, Exit, Layer } from "effect"
import { LogOpened, type LogPurpose } from "#domain/log/LogPurpose.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogOpening from "#events/log/store/LogOpening.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Starts a replica with an event store of its own. Returns the error if it refuses the log. */
const start = (purpose: LogPurpose) =>
  LogOpening.layer(purpose).pipe(Layer.provide(Layer.fresh(EventStore.layer)), Layer.provide(NodeCrypto.layer), Layer.build)

const refusalOf = (exit: Exit.Exit<unknown, { readonly message: string }>) =>
  Exit.isSuccess(exit)
    ? null
    : Exit.findErrorOption(exit).pipe((error) => (error._tag === "Some" ? error.value.message : "a defect"))

const refusesSandbox =
  /^The log is that of a sandbox, whose answers are simulated: run "vatproof sandbox" on it, or set DATABASE_URL or DATA_DIR to other data for the service$/u
const refusesLive =
  /^The log is a live one: run "vatproof serve" on it, or set DATABASE_URL or DATA_DIR to other data for the sandbox$/u

for (const round of [1, 2, 3]) {
  layer(MigratedDatabase.layer)(`a new log to which services of both purposes start at the same time, round ${round}`, (it) => {
    it.effect("is opened by one event, and by the services of its purpose only", function* () {
      const { read } = yield* EventStore
      const purposes = Array.from({ length: 10 }, (_, index): LogPurpose => (index % 2 === 0 ? "live" : "sandbox"))
      const exits = yield* Effect.forEach(purposes, (purpose) => Effect.exit(start(purpose)), { concurrency: "unbounded" })
      const events = yield* read(0, 10)
      assert.deepStrictEqual(
        events.map(({ position, type }) => [position, type]),
        [[0, LogOpened.type]]
      )
      const purpose = events[0]?.data === `{"purpose":"live"}` ? "live" : "sandbox"
      const refused = purpose === "live" ? refusesLive : refusesSandbox
      for (const [index, exit] of exits.entries()) {
        const message = refusalOf(exit)
        if (purposes[index] === purpose) assert.isNull(message)
        else assert.match(message ?? "", refused)
      }
    })
  })
}

layer(MigratedDatabase.layer)("the log of an earlier build", (it) => {
  it.effect("is refused by both, because its first event does not state its purpose", function* () {
    const { append, read } = yield* EventStore
    const events = [{ type: "Tested", schemaVersion: 1, data: {} }] as const
    yield* append({ stream: "tested", expectedVersion: null, events, charge: null })
    for (const purpose of ["live", "sandbox"] as const) {
      const message = refusalOf(yield* Effect.exit(start(purpose)))
      assert.match(
        message ?? "",
        /^The log does not state whether it is live or a sandbox, because an earlier build created it: set/u
      )
    }
    assert.lengthOf(yield* read(0, 10), 1)
  })
})
