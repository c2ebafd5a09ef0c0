import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"
import { format, parse, readData } from "#events/log/store/EventLine.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const event = new StoredEvent({
  log_id: 0,
  position: 7,
  stream_id: 'receipt-"Ω"',
  version: 3,
  event_id: "019371c0-5f00-7000-8000-0000000000aa",
  type: "ReceiptIssued",
  schema_version: 1,
  occurred_at: "2026-11-21T09:30:00.123456Z",
  recorded_at: "2026-11-21T09:30:00.130000Z",
  correlation_id: "019371c0-5f00-7000-8000-0000000000ab",
  causation_id: null,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  meter_id: null,
  units: 1,
  data: '{"event_id":"not this one","list":[1,2.5,"\\"\\n\\u0001 €"],"metadata":{}}',
  metadata: '{"request_id":"r1"}'
})

describe("the line format of events", () => {
  it("writes an event as canonical JSON, and parses it to the same event", () => {
    const line = format(event)
    const value = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))(line)
    assert.strictEqual(Result.getOrThrow(CanonicalJson.encode(value)), line)
    assert.deepStrictEqual(Result.getOrThrow(parse(line)), event)
    assert.deepInclude(readData(event), { event_id: "not this one" })
  })

  it("rejects a line that is not the canonical JSON of an event", () => {
    const line = format(event)
    const spellings = [
      ` ${line}`,
      `${line} `,
      line.replace('"position":7', '"position":7.0'),
      line.replace('"position":7', '"position": 7'),
      line.replace("€", "\\u20ac"),
      line.replace('"causation_id":null,', ""),
      line.replace('{"causation_id"', '{"more":1,"causation_id"'),
      line.replace('"units":1', '"units":1,"units":1'),
      line.slice(0, -1),
      "{}",
      ""
    ]
    for (const spelling of spellings) assert.isTrue(Result.isFailure(parse(spelling)), spelling)
  })

  it("rejects a line with any changed character, or parses it to a different event", () => {
    const line = format(event)
    for (let i = 0; i < line.length; i += 1) {
      const changed = `${line.slice(0, i)}${line.charAt(i) === "0" ? "1" : "0"}${line.slice(i + 1)}`
      const read = parse(changed)
      if (Result.isSuccess(read)) assert.notDeepEqual(read.success, event, changed)
    }
  })
})
