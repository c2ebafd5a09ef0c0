import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const justUnderAnHour = "59 minutes"
const justUnderADay = "1439 minutes"

const live = { status: 200, body: { cache: false, source: "vies" } }
const cached = { status: 200, body: { cache: true, source: "cache" } }

layer(RunningService.layerShared(), { excludeTestServices: true })("the answer cache", (it) => {
  it.effect(
    "returns the same verdict, and the same time at which the source answered, for every spelling of the VAT ID",
    function* () {
      const { validate } = yield* RunningService.RunningService
      const first = yield* validate("EL100431001")
      assert.containSubset(first, live)
      const again = yield* validate("gr 100-431.001")
      assert.containSubset(again, cached)
      const timestampOf = (text: string) => /"source_timestamp":"[^"]+"/u.exec(text)?.[0]
      assert.isDefined(timestampOf(first.text))
      assert.strictEqual(timestampOf(again.text), timestampOf(first.text))
      assert.containSubset(again, { body: { company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε." } })
    }
  )

  it.effect("is shared by callers with and without a key", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const vatId = vatIdEnding("IT", "431002")
    assert.containSubset(yield* validate(vatId, { key: yield* newKey }), live)
    assert.containSubset(yield* validate(vatId), cached)
  })

  it.effect("is bypassed and refreshed by a request with force_live", function* () {
    const { validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const vatId = vatIdEnding("LU", "431003")
    for (const force_live of ["true", "1", "1"]) assert.containSubset(yield* validate(vatId, { query: { force_live } }), live)
    assert.strictEqual(yield* sandbox.checks({ vatId }), 3)
    yield* sandbox.script([{ kind: "code", code: "INVALID", vat_id: vatId }])
    for (const force_live of ["false", "0"]) {
      assert.containSubset(yield* validate(vatId, { query: { force_live } }), { ...cached, body: { valid: true } })
    }
    assert.containSubset(yield* validate(vatId, { query: { force_live: "1" } }), { ...live, body: { valid: false } })
    assert.containSubset(yield* validate(vatId), { ...cached, body: { valid: false } })
  })

  it.effect("serves a cached answer only if it is younger than max_age", function* () {
    const service = yield* RunningService.make()
    const vatId = vatIdEnding("LU", "431013")
    const key = yield* service.newKey
    const post = (more: object) => service.post("/v1/validations", { vat_id: vatId, ...more }, { key })
    assert.containSubset(yield* service.validate(vatId), live)
    yield* service.travel("10 minutes")
    assert.containSubset(yield* service.validate(vatId, { query: { max_age: "660" } }), cached)
    assert.containSubset(yield* post({ max_age: 660 }), cached)
    assert.containSubset(yield* service.validate(vatId, { query: { max_age: "660", force_live: "1" } }), live)
    yield* service.travel("10 minutes")
    assert.containSubset(yield* service.validate(vatId, { query: { max_age: "600" } }), live)
    assert.containSubset(yield* service.validate(vatId, { query: { max_age: "0" } }), live)
    assert.containSubset(yield* post({ max_age: 0 }), live)
    yield* service.travel("10 minutes")
    assert.containSubset(yield* post({ max_age: 600 }), live)
  })

  it.effect("keeps valid answers for a day and invalid answers for an hour after the source has answered", function* () {
    const { travel, validate } = yield* RunningService.make()
    const valid = vatIdEnding("HU", "431004")
    const invalid = vatIdEnding("HU", "999200")
    assert.containSubset(yield* validate(valid), { ...live, body: { valid: true } })
    assert.containSubset(yield* validate(invalid), { ...live, body: { valid: false } })
    yield* travel(justUnderAnHour)
    assert.containSubset(yield* validate(invalid), { ...cached, body: { valid: false } })
    yield* travel("2 minutes")
    assert.containSubset(yield* validate(invalid), { ...live, body: { valid: false } })
    assert.containSubset(yield* validate(valid), { ...cached, body: { valid: true } })
    yield* travel(justUnderADay)
    assert.containSubset(yield* validate(valid), { ...live, body: { valid: true } })
  })

  it.effect("keeps invalid answers for the time that CACHE_TTL_INVALID sets", function* () {
    const { travel, validate } = yield* RunningService.make(RunningService.otherSettings)
    const vatId = vatIdEnding("SI", "999200")
    assert.containSubset(yield* validate(vatId), live)
    yield* travel("2 hours")
    assert.containSubset(yield* validate(vatId), cached)
    yield* travel("2 hours")
    assert.containSubset(yield* validate(vatId), live)
  })

  it.effect("is shared by all replicas", function* () {
    const vatId = vatIdEnding("MT", "431005")
    const { validate } = yield* RunningService.RunningService
    assert.containSubset(yield* validate(vatId), live)
    const other = yield* RunningService.make()
    assert.containSubset(yield* other.validate(vatId), cached)
    assert.strictEqual(yield* (yield* Sandbox).checks({ vatId }), 1)
  })
})
