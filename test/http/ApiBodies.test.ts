/** Response bodies that handlers build by hand have exactly the fields of their schemas. */
import { Effect, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { Health, SourceStatusReport } from "#http/system/SystemApi.ts"
import { UsageReport } from "#http/callers/UsageApi.ts"
import { ValidationResult } from "#http/validation/ValidationApi.ts"
import { confirm, muster, newPaidKey } from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const exactly = { onExcessProperty: "error" } as const
const decodeValidation = Schema.decodeUnknownEffect(ValidationResult, exactly)
const decodeUsage = Schema.decodeUnknownEffect(UsageReport, exactly)
const decodeHealth = Schema.decodeUnknownEffect(Health, exactly)
const decodeStatus = Schema.decodeUnknownEffect(SourceStatusReport, exactly)
const encodeValidation = Schema.encodeEffect(ValidationResult)

/** Asserts that decoding and encoding the body gives the same body. Returns the decoded body. */
const validationOf = Effect.fnUntraced(function* (reply: Reply) {
  assert.strictEqual(reply.status, 200, reply.text)
  const decoded = yield* decodeValidation(reply.body)
  assert.deepStrictEqual(reply.body, yield* encodeValidation(decoded))
  return decoded
})

layer(RunningService.layerShared(), { excludeTestServices: true })("the API", (it) => {
  it.effect("returns live and cached validations of valid and invalid VAT IDs with exactly the documented fields", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    for (const source of ["vies", "cache"]) {
      const { cache, source: answered } = yield* validationOf(yield* validate("ATU12345678", { key }))
      assert.deepStrictEqual([answered, cache], [source, source === "cache"])
    }
    const query = { requester_vat_id: "DE811115368", force_live: "1" }
    assert.isNotNull((yield* validationOf(yield* validate("ATU12345678", { key, query }))).consultation_number)
    assert.isFalse((yield* validationOf(yield* validate("ATU99999999", { key }))).valid)
  })

  it.effect("returns a stale answer during an outage with exactly the documented fields", function* () {
    const { travel, validate } = yield* RunningService.make()
    const sandbox = yield* Sandbox
    yield* validate("ATU12345670")
    yield* sandbox.configure({ vies_available: false })
    yield* travel("25 hours")
    const reply = yield* validate("ATU12345670")
    yield* sandbox.reset
    assert.isDefined(reply.headers["warning"])
    assert.isTrue((yield* validationOf(reply)).cache)
  })

  it.effect("returns a qualified confirmation in words or in letters, with exactly the documented fields", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service)
    const words = yield* validationOf(yield* confirm(service, "DE123456789", key))
    assert.containSubset(words.qualified_confirmation, { name_match: "match" })
    const letters = yield* confirm(service, "DE123456789", key, { ...muster, match_format: "letters" })
    assert.containSubset((yield* validationOf(letters)).qualified_confirmation, { name_match: "A" })
  })

  it.effect("returns usage, status and health with exactly the documented fields", function* () {
    const { get, newKey } = yield* RunningService.RunningService
    yield* decodeUsage((yield* get("/v1/usage", { key: yield* newKey })).body)
    yield* decodeStatus((yield* get("/v1/status")).body)
    yield* decodeHealth((yield* get("/health")).body)
  })
})
