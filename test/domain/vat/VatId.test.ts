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
  ])("typed as '%s' is normalised to %s", (input, value) => {
    assert.strictEqual(valueOf(input), value)
  })

  it("consists of its member state and its number", () => {
    const vatId = Result.getOrThrow(parse("gr094259216"))
    assert.strictEqual(vatId.memberState.alpha2, "GR")
    assert.strictEqual(vatId.memberState.prefix, "EL")
    assert.strictEqual(vatId.number, "094259216")
  })

  it.each([
    ["an empty text", ""],
    ["separators only", " .-"],
    ["a prefix only", "DE"],
    ["a Greek prefix only", "GR"],
    ["a doubled prefix", "DEDE123456789"],
    ["a number with the prefixes GR and EL", "GREL094259216"],
    ["a number of Great Britain", "GB123456789"],
    ["a malformed number of Northern Ireland", "XI12345678A"],
    ["a number of Switzerland", "CHE123456789"],
    ["a number of Norway", "NO123456789"],
    ["a number with the prefix EU for foreign providers of services", "EU123456789"],
    ["eight digits without a prefix", "12345678"],
    ["ten digits without a prefix", "1234567890"],
    ["a number with a dotless i", "ıe6433435F"],
    ["a number with a long s", "ſe123456789701"],
    ["a number with a Kelvin sign", "SK\u212a2022749619"],
    ["a number with full-width letters", "ＤＥ123456789"],
    ["a number with full-width digits", "DE１２３４５６７８９"],
    ["a number with Arabic digits", "DE١٢٣٤٥٦٧٨٩"],
    ["full-width digits without a prefix", "１２３４５６７８９"],
    ["a number with a zero-width space", "DE123\u200b456789"],
    ["a number with a zero-width joiner", "DE\u200d123456789"],
    ["a number with a byte order mark", "\ufeffDE123456789"],
    ["a number with a soft hyphen", "DE\u00ad123456789"],
    ["a number with a no-break space", "DE\u00a0123456789"],
    ["a number with an en dash", "DE123–456–789"],
    ["a number with a tab", "DE\t123456789"],
    ["a number with a line break", "DE123456789\n"],
    ["a number with a null byte", "DE123456789\u0000"],
    ["a number with a slash", "DE123/456/789"],
    ["a number with an underscore", "DE_123456789"],
    ["a number with a lone surrogate", "DE12345678\ud800"],
    ["a number with an emoji digit", "DE1️⃣23456789"],
    ["the JavaScript property name __proto__", "__proto__"],
    ["the JavaScript property name constructor", "constructor"]
  ])("is rejected if it is %s", (_, input) => {
    assert.isNull(valueOf(input))
  })

  it("is rejected in a wrong format, with a message that describes the expected format", () => {
    assert.strictEqual(messageOf("DE12345678"), "A VAT ID of Germany is DE followed by 9 digits")
    assert.strictEqual(messageOf("GR12"), "A VAT ID of Greece is EL followed by 9 digits")
    assert.match(messageOf("GB123456789") ?? "", /prefix of an EU member state/u)
  })

  it("is rejected with a short message if it has a million characters", () => {
    assert.isBelow(messageOf("D".repeat(1_000_000))?.length ?? 0, 100)
    assert.isBelow(messageOf(`DE${" ".repeat(1_000_000)}123456789`)?.length ?? 0, 100)
  })

  it("is accepted as the requester's VAT ID only if it is German", () => {
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

  it.prop("is unchanged by parsing if it is normalised already", [sound], ([input]) => {
    assert.strictEqual(valueOf(input), input)
  })

  it.prop(
    "is parsed to the same value with any separators, and in upper or lower case",
    [sound, Arbitrary.array(Arbitrary.schema(separator), { maxLength: 40 }), Schema.Boolean],
    ([input, separators, lower]) => {
      const spaced = [...input].map((character, index) => (separators[index] ?? "") + character).join("")
      assert.strictEqual(valueOf(lower ? spaced.toLowerCase() : spaced), input)
    }
  )

  it.prop("is either well formed or rejected, for any text", [Schema.String], ([input]) => {
    const value = valueOf(input)
    if (value !== null) assert.match(value, /^[A-Z]{2}[A-Z0-9+*]{2,12}$/u)
  })
})
