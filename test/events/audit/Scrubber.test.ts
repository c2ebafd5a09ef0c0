import { Duration, Effect, Layer, Schedule } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import * as Scrubber from "#events/audit/Scrubber.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

const facts = (count: number): ReadonlyArray<SignedLog.Fact> =>
  Array.from({ length: count }, (_, index) => ({ stream: `key-${index % 13}`, type: "SourceRecovered", data: { index } }))

const pace = { tiles: 1, every: Duration.zero, rest: Duration.hours(1) }

/** Runs a pass on a new replica, after the lease of the previous replica has expired. */
const scrub = Effect.gen(function* () {
  yield* MigratedDatabase.execute("UPDATE vatproof.scrubs SET held_until = '-infinity'")
  return yield* yield* Scrubber.makePass(pace, yield* SchemaOfProgram.comparison)
})

/** Changes by a superuser: name, statement, statement that reverts the change, and expected finding. */
const attacks: ReadonlyArray<readonly [name: string, change: string, undo: string, found: string]> = [
  [
    "a changed event",
    "UPDATE vatproof.events SET units = 5 WHERE position = 321",
    "UPDATE vatproof.events SET units = 0 WHERE position = 321",
    "The event at position 321 differs from the signed event"
  ],
  [
    "an event that was moved to another position",
    "UPDATE vatproof.events SET position = 5000 WHERE position = 300",
    "UPDATE vatproof.events SET position = 300 WHERE position = 5000",
    "The event at position 300 is missing"
  ],
  [
    "a changed hash in an upper tile",
    "UPDATE vatproof.tiles SET hashes = overlay(hashes placing sha256('x') from 33) WHERE level = 1",
    "UPDATE vatproof.tiles t SET hashes = k.hashes FROM public.kept_tiles k WHERE k.level = t.level AND k.index = t.index",
    "The stored tree is wrong in tile 1/0"
  ],
  [
    "a changed leaf at the end of the tree",
    "UPDATE vatproof.tiles SET hashes = overlay(hashes placing sha256('x') from 33) WHERE level = 0 AND index = 2",
    "UPDATE vatproof.tiles t SET hashes = k.hashes FROM public.kept_tiles k WHERE k.level = t.level AND k.index = t.index",
    "The stored tree does not match the signed checkpoint of 600 events"
  ],
  [
    "a changed row of a projection",
    "UPDATE vatproof.streams SET version = version + 1 WHERE stream_id = 'key-3'",
    "UPDATE vatproof.streams SET version = version - 1 WHERE stream_id = 'key-3'",
    "The projection streams is wrong at position 588"
  ],
  [
    "a forged personal document",
    "INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 17, '{}', now())",
    "DELETE FROM vatproof.personal_documents WHERE position = 17",
    "Wrong at position 17: there is a personal document, but the event has no digest of one"
  ]
]

layer(Layer.merge(SignedLog.layer, logCatalogue), { excludeTestServices: true })(
  "The scrubber, the background verification of the log,",
  (it) => {
    it.effect("verifies the whole log on one replica at a time, and reports nothing for an intact log", function* () {
      yield* SignedLog.appendAll(facts(600))
      yield* SignedLog.sign(600)
      yield* SignedLog.appendAll(facts(3))
      yield* MigratedDatabase.execute("CREATE TABLE public.kept_tiles AS TABLE vatproof.tiles")
      assert.strictEqual(yield* scrub, 0)
      assert.isNull(yield* yield* Scrubber.makePass(pace, yield* SchemaOfProgram.comparison))
    })

    it.effect("compares the search index with the log in the middle of a pass", function* () {
      yield* MigratedDatabase.execute("UPDATE vatproof.scrubs SET held_until = '-infinity'")
      yield* MigratedDatabase.execute(
        "INSERT INTO vatproof.event_index (log_id, position, type) VALUES (0, 5000, 'ApiKeyRevoked')"
      )
      const pass = yield* Scrubber.makePass({ ...pace, every: Duration.hours(1) }, yield* SchemaOfProgram.comparison)
      yield* Effect.forkScoped(pass)
      const { report } = yield* Integrity
      yield* Effect.repeat(report, {
        schedule: Schedule.spaced("20 millis"),
        until: ({ altered }) => altered.includes("The projection event_index is wrong at position 5000")
      })
      yield* MigratedDatabase.execute("DELETE FROM vatproof.event_index")
    })

    for (const [name, change, undo, found] of attacks) {
      it.effect(`detects ${name}, and reports it to operators`, function* () {
        yield* tamper(change)
        const count = yield* scrub
        yield* tamper(undo)
        const { altered } = yield* (yield* Integrity).report
        assert.isAtLeast(count ?? 0, 1)
        assert.include(altered, found)
      })
    }
  }
)
