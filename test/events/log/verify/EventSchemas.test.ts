import { assert, it } from "@effect/vitest"
import * as EventSchemas from "#events/log/verify/EventSchemas.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { cached } from "#test/support/SourceAnswer.ts"

const stored = (data: object, type = "VatIdVerified") =>
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

const findingsOf = (event: StoredEvent) => {
  const findings = Findings.make()
  EventSchemas.make(findings)(event)
  return findings.list().map(({ message, position }) => `${position}: ${message}`)
}

it("reports data that does not have the form of its type", () => {
  const message = "7: the data of the event does not have the form of VatIdVerified"
  for (const data of [{ ...cached, valid: "yes" }, { ...cached, served: "made up" }, {}])
    assert.deepStrictEqual(findingsOf(stored(data)), [message])
  assert.deepStrictEqual(findingsOf(stored(cached)), [])
})

it("reports a live answer without a personal document", () => {
  const live = { ...cached, served: "live" }
  assert.deepStrictEqual(findingsOf(stored(live)), ["7: the event claims a live answer, but it has no personal document"])
  assert.deepStrictEqual(findingsOf(stored({ ...live, personal_sha256: "0".repeat(64) })), [])
})

it("reports nothing for a type that this version does not know", () => {
  assert.deepStrictEqual(findingsOf(stored({}, "OfALaterVersion")), [])
})
