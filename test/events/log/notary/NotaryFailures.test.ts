import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, MutableRef, Option, Schedule } from "effect"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Notary from "#events/log/notary/Notary.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { keysOf, signerOf } from "#test/support/log/Keys.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"

const options = { keys: keysOf(signerOf("vatproof.example/log/0")), loadSeen: Effect.succeed([]), saveSeen: () => Effect.void }
const event = { type: "SourceRecovered", schemaVersion: 1, data: {} }

const soon = Schedule.spaced("10 millis")

it.live("The notary logs a failed iteration and continues", () =>
  Effect.gen(function* () {
    const said = MutableRef.make("")
    const keep = Logger.map(Logger.formatLogFmt, (line) => void MutableRef.update(said, (before) => before + line))
    const { append } = yield* EventStore
    const { newest } = yield* TreeStore
    yield* MigratedDatabase.execute("ALTER FUNCTION vatproof.claim_notary RENAME TO claim_notary_away")
    yield* Effect.provide(Layer.build(Notary.layer(options)), Logger.layer([keep]))
    yield* Effect.repeat(
      Effect.sync(() => said.current.includes("Signing the log failed")),
      { until: (isSaid) => isSaid, schedule: soon }
    )
    yield* MigratedDatabase.execute("ALTER FUNCTION vatproof.claim_notary_away RENAME TO claim_notary")
    yield* append({ stream: "source-vies", expectedVersion: null, events: [event], charge: null })
    const signed = yield* Effect.repeat(newest, { until: Option.exists(({ size }) => size > 0), schedule: soon })
    assert.strictEqual(Option.getOrThrow(signed).size, 1)
  }).pipe(Effect.scoped, Effect.provide(SignedLog.ground))
)
