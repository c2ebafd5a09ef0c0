/** The table source_hours has exactly the calls that the events name. */
import { DateTime, Effect, Layer } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import type { Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as SourceHours from "#events/vat/SourceHours.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { answered, sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, layer } from "#test/support/Test.ts"

const attempt = (at: string, outcome: Attempt["outcome"], code: string | null, duration_ms: number): Attempt => ({
  source: "vies",
  outcome,
  code,
  started_at: DateTime.makeUnsafe(at),
  duration_ms
})

const asked = { force_live: false, requester_vat_id: null }

const failed = (vat_id: string, attempts: ReadonlyArray<Attempt>) =>
  VatIdVerificationFailed.make({ ...asked, vat_id, account_id: null, attempts }, { reference: `"attempts":[{` })

const stale = (vat_id: string, attempts: ReadonlyArray<Attempt>) =>
  VatIdVerified.make({
    ...asked,
    vat_id,
    valid: true,
    source: "vies",
    answered_at: sourceAnswer.answered_at,
    served: attempts.length === 0 ? "cache" : "stale",
    answer: null,
    answer_position: 0,
    attempts
  })

/** The test applies the events one by one, so that calls are added to existing rows. */
const events = [
  answered("FR12345678901", sourceAnswer, [
    attempt("2026-11-02T10:59:59.900Z", "member_state_unavailable", "MS_UNAVAILABLE", 30),
    attempt("2026-11-02T11:00:00.100Z", "answered", null, 200)
  ]),
  answered("FR12345678902", sourceAnswer, [attempt("2026-11-02T11:30:00.000Z", "answered", null, 500)]),
  failed("EL123456789", [attempt("2026-11-02T11:00:00.000Z", "timeout", null, 9_000)]),
  failed("EL123456789", [attempt("2026-11-02T11:00:00.000Z", "circuit_open", null, 0)]),
  failed("EL123456789", [
    attempt("2026-11-02T11:00:00.000Z", "saturated", null, 0),
    attempt("2026-11-02T11:01:00.000Z", "timeout", null, 9_001)
  ]),
  failed("EL123456789", [attempt("2026-11-02T11:00:00.000Z", "over_budget", "BUDGET", 0)]),
  stale("FR12345678901", [attempt("2026-11-02T10:10:00.000Z", "member_state_unavailable", "MS_UNAVAILABLE", 50)]),
  stale("FR12345678901", []),
  failed("EL123456789", [attempt("2026-11-02T12:00:00.000Z", "unavailable", `"}],"vat_id":"FR\u0000 "attempts":[{`, 7)])
]

layer(Projections.layer([SourceHours.definition]).pipe(Layer.provideMerge(Layer.merge(MigratedDatabase.layer, logCatalogue))), {
  excludeTestServices: true
})("The table of calls per hour", (it) => {
  it.effect("adds up the calls of sources and leaves out attempts that called no source", function* () {
    const store = yield* EventStore
    const { upToDate } = yield* Projections
    yield* Effect.forEach(events, (event) =>
      Effect.andThen(
        store.append({ stream: "key-a", expectedVersion: null, events: [event], charge: null }),
        upToDate(SourceHours.sourceHours)
      )
    )
    const rows =
      yield* texts(`SELECT concat_ws(' ', to_char(hour AT TIME ZONE 'UTC', 'DD HH24:MI'), member_state, source, outcome, calls, ms_sum, ms_max, last_position) AS text
      FROM vatproof.source_hours ORDER BY 1`)
    assert.deepStrictEqual(rows, [
      "02 10:00 FR vies MS_UNAVAILABLE 2 80 50 6",
      "02 11:00 EL vies timeout 2 18001 9001 4",
      "02 11:00 FR vies answered 2 700 500 1",
      `02 12:00 EL vies "}],"vat_id":"FR\uFFFD "attempts":[{ 1 7 7 8`
    ])
  })
})
