import { assert, it } from "#test/support/Test.ts"
import { Effect } from "effect"
import * as EventSchemas from "#events/log/verify/EventSchemas.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import { EventTypes } from "#events/log/store/EventTypes.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { storedEvent } from "#test/support/log/Events.ts"
import { ParcelSent } from "#test/support/log/Parcels.ts"

const stored = (data: object, type = ParcelSent.type) => storedEvent({ type, data: JSON.stringify(data) })

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
