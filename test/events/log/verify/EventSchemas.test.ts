import { assert, it } from "#test/support/Test.ts"
import { Effect } from "effect"
import * as EventSchemas from "#events/log/verify/EventSchemas.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import { EventTypes } from "#events/log/store/EventTypes.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { ParcelSent } from "#test/support/log/Parcels.ts"

const stored = (data: object, type = ParcelSent.type) =>
  new StoredEvent({
    log_id: 0,
    position: 7,
    stream_id: "key-a",
    version: 1,
    event_id: "01a2072c-84e1-736d-b4f8-7231335ed2e9",
    type,
    schema_version: 1,
    occurred_at: "2026-11-23T06:51:27.841000Z",
    recorded_at: "2026-11-23T06:51:27.848917Z",
    correlation_id: "01a2072c-84b8-703f-b3ca-c332d4df04f2",
    causation_id: null,
    trace_id: null,
    meter_id: null,
    units: 1,
    data: JSON.stringify(data),
    metadata: "{}"
  })

const findingsOf = Effect.fnUntraced(
  function* (event: StoredEvent) {
    const findings = Findings.make()
    const compare = yield* EventSchemas.make(findings)
    compare(event)
    return findings.list().map(({ message, position }) => `${position}: ${message}`)
  },
  Effect.provideService(EventTypes, [ParcelSent])
)

const parcel = { parcel: "1", grams: 500 }

it.effect("reports data that does not have the form of its type", function* () {
  const message = "7: the data of the event does not have the form of ParcelSent"
  for (const data of [{ ...parcel, grams: "heavy" }, { ...parcel, personal_sha256: 1 }, {}])
    assert.deepStrictEqual(yield* findingsOf(stored(data)), [message])
  assert.deepStrictEqual(yield* findingsOf(stored(parcel)), [])
})

it.effect("reports nothing for a type that this version does not know", function* () {
  assert.deepStrictEqual(yield* findingsOf(stored({}, "OfALaterVersion")), [])
})
