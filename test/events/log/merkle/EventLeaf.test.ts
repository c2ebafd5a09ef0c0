import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { encode } from "#events/log/merkle/CanonicalJson.ts"
import { leafText, type EventEnvelope } from "#events/log/merkle/EventLeaf.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"

const event: EventEnvelope = {
  log_id: 0,
  position: 41,
  stream_id: "key-018f2b6a-0000-7000-8000-000000000001",
  version: 7,
  event_id: "019371c0-5f00-7000-8000-0000000000aa",
  type: "VatIdVerified",
  schema_version: 1,
  occurred_at: "2026-11-21T09:30:00.123456Z",
  recorded_at: "2026-11-21T09:30:00.130000Z",
  correlation_id: "019371c0-5f00-7000-8000-0000000000ab",
  causation_id: null,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  meter_id: "account-1/2026-11",
  units: 1,
  data_sha256: pureCrypto.sha256Hex(`{"valid":true}`),
  metadata_sha256: pureCrypto.sha256Hex("{}")
}

const text = (envelope: EventEnvelope) => Result.getOrThrow(leafText(envelope))

describe("the encoder of event leaves", () => {
  it("writes exactly the expected leaf, because any other leaf would invalidate signed logs", () => {
    assert.strictEqual(
      text(event),
      [
        `{"causation_id":null,"correlation_id":"019371c0-5f00-7000-8000-0000000000ab"`,
        `"data_sha256":"8daf09a6fc31937457dd77e9c25ce4b21349d605b561a8c5d557841bf964c9a0"`,
        `"event_id":"019371c0-5f00-7000-8000-0000000000aa","log_id":0`,
        `"metadata_sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"`,
        `"meter_id":"account-1/2026-11","occurred_at":"2026-11-21T09:30:00.123456Z","position":41`,
        `"recorded_at":"2026-11-21T09:30:00.130000Z","schema_version":1`,
        `"stream_id":"key-018f2b6a-0000-7000-8000-000000000001","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`,
        `"type":"VatIdVerified","units":1,"version":7}`
      ].join()
    )
  })

  const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
  const words = Schema.Struct({ stream_id: Schema.String, type: Schema.String, meter_id: Schema.NullOr(Schema.String) })
  const counts = Schema.Struct({ position: count, version: count, units: Schema.Int })
  it.prop(
    "writes the same text as the general encoder of canonical JSON",
    [words, counts, Schema.Boolean],
    ([words, counts, odd]) => {
      const envelope = {
        ...event,
        ...words,
        ...counts,
        causation_id: odd ? event.event_id : null,
        trace_id: odd ? null : event.trace_id
      }
      const expected = encode(envelope)
      assert.deepStrictEqual(Result.getSuccess(leafText(envelope)), Result.getSuccess(expected))
    }
  )

  it("escapes text as RFC 8785 specifies", () => {
    const envelope = { ...event, stream_id: 'a"b\\c\u0000\u001f\u2028€😀</', type: "\r\n", meter_id: "\u007f" }
    assert.strictEqual(text(envelope), Result.getOrThrow(encode(envelope)))
  })

  it("writes leaves shorter than 65,536 bytes, the limit of an entry bundle of tlog-tiles", () => {
    const longest = "\u0001".repeat(2048)
    const leaf = text({ ...event, stream_id: longest, type: longest, meter_id: longest })
    assert.isBelow(new TextEncoder().encode(leaf).length, 2 ** 16)
  })

  it("rejects an event with a malformed field in its envelope, and names the field", () => {
    const malformed: ReadonlyArray<Partial<EventEnvelope>> = [
      { log_id: -1 },
      { position: 2 ** 53 },
      { version: 1.5 },
      { schema_version: Number.NaN },
      { units: 2 ** 53 },
      { stream_id: "\ud800" },
      { stream_id: "s".repeat(2049) },
      { type: "\udfff" },
      { meter_id: "\ud800m" },
      { event_id: "019371C0-5F00-7000-8000-0000000000AA" },
      { correlation_id: "019371c05f00700080000000000000aa" },
      { causation_id: "" },
      { trace_id: "4BF92F3577B34DA6A3CE929D0E0E4736" },
      { trace_id: "\\x4bf92f3577b34da6a3ce929d0e0e4736" },
      { occurred_at: "2026-11-21T09:30:00.123Z" },
      { occurred_at: "2026-11-21T09:30:00.123456Z\n" },
      { recorded_at: "2026-11-21 09:30:00.123456+00" },
      { data_sha256: "" },
      { metadata_sha256: event.metadata_sha256.toUpperCase() }
    ]
    for (const change of malformed) {
      const refusal = Result.getOrThrow(Result.flip(leafText({ ...event, ...change })))
      assert.strictEqual(refusal.field, Object.keys(change)[0])
    }
    const refusal = Result.getOrThrow(Result.flip(leafText({ ...event, type: "\ud800" })))
    assert.strictEqual(refusal.message, "The event at position 41 has a malformed type")
  })
})
