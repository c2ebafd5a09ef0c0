import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { likelyName } from "#domain/text/LikelyName.ts"
import { ValidationQuery } from "#http/validation/ValidationApi.ts"

const known = Object.keys(ValidationQuery.fields)

describe("likelyName", () => {
  it.each([
    ["forcelive", "force_live"],
    ["force-live", "force_live"],
    ["Force_Live", "force_live"],
    ["force_liv", "force_live"],
    ["fore_live", "force_live"],
    ["froce_live", "force_live"],
    ["force_lives", "force_live"],
    ["company_nam", "company_name"],
    ["companyName", "company_name"],
    ["requester_vatid", "requester_vat_id"],
    ["requester_id", null],
    ["match", null],
    ["unknown", null],
    ["vat_id", null],
    ["x", null],
    ["", null],
    ["FORCE_LIVE", null]
  ])('for the unknown name "%s" returns the known name %s', (name, likely) => {
    assert.strictEqual(Option.getOrNull(likelyName(name, known)), likely)
  })

  it("returns no suggestion for a known name", () => {
    for (const name of known) assert.isTrue(Option.isNone(likelyName(name, known)))
  })
})
