import { assert, it } from "@effect/vitest"
import * as Findings from "#events/log/verify/Findings.ts"
import { check } from "#events/vat/LiveAnswerAudit.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { storedEvent } from "#test/support/log/Events.ts"
import { cached } from "#test/support/SourceAnswer.ts"

const findingsOf = (data: object) => {
  const findings = Findings.make()
  check.make({ begins: true, crypto: pureCrypto, findings })(storedEvent({ type: "VatIdVerified", data: JSON.stringify(data) }))
  return findings.list().map(({ message, position }) => `${position}: ${message}`)
}

it("reports a live answer without a personal document", () => {
  const live = { ...cached, served: "live" }
  assert.deepStrictEqual(findingsOf(live), ["7: the event claims a live answer, but it has no personal document"])
  assert.deepStrictEqual(findingsOf({ ...live, personal_sha256: "0".repeat(64) }), [])
  assert.deepStrictEqual(findingsOf(cached), [])
})
