import { assert, describe, it } from "@effect/vitest"
import { viesCodes } from "#infra/sources/ViesCodes.ts"
import { viesTestNumbers } from "#infra/sandbox/MagicNumbers.ts"

/** The published codes: code, reason, scope, retry. */
const expected = `
INVALID_INPUT input_rejected question never
INVALID_REQUESTER_INFO requester_rejected question never
SERVICE_UNAVAILABLE unavailable source later
TIMEOUT timeout source later
GLOBAL_MAX_CONCURRENT_REQ throttled source soon
GLOBAL_MAX_CONCURRENT_REQ_TIME throttled source later
MS_UNAVAILABLE member_state_unavailable member_state later
MS_MAX_CONCURRENT_REQ throttled member_state soon
MS_MAX_CONCURRENT_REQ_TIME throttled member_state later
VAT_BLOCKED blocked question never
IP_BLOCKED blocked source later
VOW-ERR-11 input_rejected question never
VOW-ERR-1 unavailable source soon
`

describe("the error codes of VIES", () => {
  it("are the published codes, each with the service's failure reason, scope and retry rule", () => {
    const rows = [...viesCodes].map(([code, { reason, scope, retry }]) => `${code} ${reason} ${scope} ${retry}`)
    assert.deepStrictEqual(rows.toSorted(), expected.trim().split("\n").toSorted())
  })

  it("include every error of the Commission's own test service", () => {
    const codes = [...viesTestNumbers.values()].filter((code) => code !== "VALID" && code !== "INVALID")
    assert.deepStrictEqual(
      codes.filter((code) => !viesCodes.has(code)),
      []
    )
  })
})
