import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Hex } from "effect/encoding"
import * as TraceParent from "#events/log/store/TraceParent.ts"

const ids = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/u))

describe("bytesOfTraceId", () => {
  it.prop("returns the bytes of the hexadecimal digits of a trace id", [ids], ([id]) => {
    assert.strictEqual(Hex.encode(TraceParent.bytesOfTraceId(id)), id)
  })
})

describe("linksTo", () => {
  it("returns a link to the span in a traceparent header", () => {
    const [link] = TraceParent.linksTo("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert.strictEqual(link?.span.traceId, "0af7651916cd43dd8448eb211c80319c")
    assert.strictEqual(link?.span.spanId, "b7ad6b7169203331")
    assert.isTrue(link?.span.sampled)
  })

  it.each([
    null,
    "",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
    "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"
  ])("returns no link for missing or malformed text: %s", (text) => {
    assert.deepStrictEqual(TraceParent.linksTo(text), [])
  })
})
