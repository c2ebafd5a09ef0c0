import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Option, Result, Schema } from "effect"
import { isGerman, normalise, parse, parseGerman } from "#domain/vat/VatId.ts"

const valueOf = (input: string) => Result.match(parse(input), { onFailure: () => null, onSuccess: ({ value }) => value })
const messageOf = (input: string) => Result.match(parse(input), { onFailure: ({ message }) => message, onSuccess: () => null })

/** Well-formed VAT IDs of many forms. */
const sound = Schema.Literals([
  "DE123456789",
  "ATU12345678",
  "EL094259216",
  "IE9+12345A",
  "NL004495445B01",
  "FRK7399859412",
  "RO19",
  "ESX1234567L",
  "CY10259033P",
  "LT100001919017"
])
const separator = Schema.Literals([" ", "-", ".", "  ", " - ", "..."])

describe("a VAT ID", () => {
  it.each([
    ["DE123456789", "DE123456789"],
    ["de 123 456 789", "DE123456789"],
    ["DE-123.456-789", "DE123456789"],
    ["  D E 1.2-3456789 ", "DE123456789"],
    ["123456789", "DE123456789"],
    ["123 456 789", "DE123456789"],
    ["EL094259216", "EL094259216"],
    ["GR094259216", "EL094259216"],
    ["gr 094259216", "EL094259216"],
    ["nl004495445b01", "NL004495445B01"],
    ["ie 9+12345a", "IE9+12345A"],
    ["ie 9*12345a", "IE9*12345A"],
    ["ro19", "RO19"]
  ])("typed as '%s' is %s", (input, value) => {
    assert.strictEqual(valueOf(input), value)
  })

  it("has its member state and its number", () => {
    const vatId = Result.getOrThrow(parse("gr094259216"))
    assert.strictEqual(vatId.memberState.alpha2, "GR")
    assert.strictEqual(vatId.memberState.prefix, "EL")
    assert.strictEqual(vatId.number, "094259216")
  })

  it.each([
    ["nothing", ""],
    ["separators only", " .-"],
    ["a prefix only", "DE"],
    ["a Greek prefix only", "GR"],
    ["a doubled prefix", "DEDE123456789"],
    ["EL after GR", "GREL094259216"],
    ["Great Britain", "GB123456789"],
    ["Northern Ireland with a wrong number", "XI12345678A"],
    ["Switzerland", "CHE123456789"],
    ["Norway", "NO123456789"],
    ["the EU's own prefix for services", "EU123456789"],
    ["eight bare digits", "12345678"],
    ["ten bare digits", "1234567890"],
    ["a dotless i", "ıe6433435F"],
    ["a long s", "ſe123456789701"],
    ["a Kelvin sign", "SK\u212a2022749619"],
    ["full-width letters", "ＤＥ123456789"],
    ["full-width digits", "DE１２３４５６７８９"],
    ["Arabic digits", "DE١٢٣٤٥٦٧٨٩"],
    ["bare full-width digits", "１２３４５６７８９"],
    ["a zero-width space", "DE123\u200b456789"],
    ["a zero-width joiner", "DE\u200d123456789"],
    ["a byte order mark", "\ufeffDE123456789"],
    ["a soft hyphen", "DE\u00ad123456789"],
    ["a no-break space", "DE\u00a0123456789"],
    ["an en dash", "DE123–456–789"],
    ["a tab", "DE\t123456789"],
    ["a line break", "DE123456789\n"],
    ["a null byte", "DE123456789\u0000"],
    ["a slash", "DE123/456/789"],
    ["an underscore", "DE_123456789"],
    ["a lone surrogate", "DE12345678\ud800"],
    ["a digit as an emoji", "DE1️⃣23456789"],
    ["the property __proto__", "__proto__"],
    ["another property of a prototype", "constructor"]
  ])("is rejected: %s", (_, input) => {
    assert.isNull(valueOf(input))
  })

  it("of a wrong form is rejected with a message that has the expected form", () => {
    assert.strictEqual(messageOf("DE12345678"), "A VAT ID of Germany is DE followed by 9 digits")
    assert.strictEqual(messageOf("GR12"), "A VAT ID of Greece is EL followed by 9 digits")
    assert.match(messageOf("GB123456789") ?? "", /prefix of an EU member state/u)
  })

  it("of a million characters is rejected with a short message", () => {
    assert.isBelow(messageOf("D".repeat(1_000_000))?.length ?? 0, 100)
    assert.isBelow(messageOf(`DE${" ".repeat(1_000_000)}123456789`)?.length ?? 0, 100)
  })

  it("is accepted as a requester's only if it is German", () => {
    assert.deepStrictEqual(
      Option.map(parseGerman("123456789"), ({ value }) => value),
      Option.some("DE123456789")
    )
    for (const input of ["ATU12345678", "DE1", "", "GB123456789"]) assert.isTrue(Option.isNone(parseGerman(input)))
    assert.isFalse(isGerman(Result.getOrThrow(parse("ATU12345678"))))
  })

  it.prop("is unchanged by a second normalisation", [Schema.String], ([input]) => {
    assert.strictEqual(normalise(normalise(input)), normalise(input))
  })

  it.prop("in normalised form is parsed to itself", [sound], ([input]) => {
    assert.strictEqual(valueOf(input), input)
  })

  it.prop(
    "is the same with any separators, and in upper or lower case",
    [sound, Arbitrary.array(Arbitrary.schema(separator), { maxLength: 40 }), Schema.Boolean],
    ([input, separators, lower]) => {
      const spaced = [...input].map((character, index) => (separators[index] ?? "") + character).join("")
      assert.strictEqual(valueOf(lower ? spaced.toLowerCase() : spaced), input)
    }
  )

  it.prop("parsed from any text is either well formed or rejected", [Schema.String], ([input]) => {
    const value = valueOf(input)
    if (value !== null) assert.match(value, /^[A-Z]{2}[A-Z0-9+*]{2,12}$/u)
  })
})
