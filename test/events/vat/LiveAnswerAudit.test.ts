import { assert, it } from "@effect/vitest"
import * as Findings from "#events/log/verify/Findings.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { check } from "#events/vat/LiveAnswerAudit.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { cached } from "#test/support/SourceAnswer.ts"

const findingsOf = (data: object) => {
  const findings = Findings.make()
  check.make({ begins: true, crypto: pureCrypto, findings })(
    new StoredEvent({
      log_id: 0,
      position: 7,
      stream_id: "key-a",
      version: 1,
      event_id: "01a2072c-84e1-736d-b4f8-7231335ed2e9",
      type: "VatIdVerified",
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
  )
  return findings.list().map(({ message, position }) => `${position}: ${message}`)
}

it("reports a live answer without a personal document", () => {
  const live = { ...cached, served: "live" }
  assert.deepStrictEqual(findingsOf(live), ["7: the event claims a live answer, but it has no personal document"])
  assert.deepStrictEqual(findingsOf({ ...live, personal_sha256: "0".repeat(64) }), [])
  assert.deepStrictEqual(findingsOf(cached), [])
})
