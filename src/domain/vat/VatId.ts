/** Parses and normalises VAT identification numbers. */
import { Option, Result, Schema } from "effect"
import { memberStates, type MemberState } from "#domain/vat/MemberStates.ts"

/** The text matches neither the structure of a member state nor that of Northern Ireland. */
export class InvalidVatId extends Schema.TaggedError<InvalidVatId>()("InvalidVatId", { message: Schema.String }) {}

/** A well-formed VAT ID. `value` is prefix and number as VIES writes them, e.g. `EL123456789`. */
export interface VatId {
  readonly value: string
  readonly memberState: MemberState
  readonly number: string
}

/** Longer input is rejected without parsing. A VAT ID has at most 14 characters; callers may add spaces, hyphens and dots. */
const maxInputLength = 128

const asciiUpper = (text: string) => text.replace(/[a-z]/gu, (letter) => letter.toUpperCase())

/**
 * Removes ASCII spaces, hyphens and dots, and converts ASCII letters to upper case. Letters and digits outside ASCII stay as they
 * are, such as `ı` and `１`.
 */
export const normalise = (input: string): string => asciiUpper(input.replace(/[ .-]/gu, ""))

const refuse = (message: string) => Result.fail(new InvalidVatId({ message }))

// The errors are created once, because the stack trace of an error costs more than the whole check.
const unknownPrefix = refuse("A VAT ID starts with the prefix of an EU member state, for example DE, FR or EL, or with XI")
const wrongStructure = new Map(
  Array.from(memberStates.values(), ({ name, prefix, structure }) => [
    prefix,
    refuse(`A VAT ID of ${name} is ${prefix} followed by ${structure}`)
  ])
)

/** Parses a VAT ID. Digits without a prefix are a German number; the prefix `GR` means `EL`. */
export const parse = (input: string): Result.Result<VatId, InvalidVatId> => {
  if (input.length > maxInputLength) return refuse(`A VAT ID has at most 14 characters; ${input.length} were sent`)
  const text = normalise(input)
  const withPrefix = /^\d+$/u.test(text) ? `DE${text}` : text.startsWith("GR") ? `EL${text.slice(2)}` : text
  const memberState = memberStates.get(withPrefix.slice(0, 2))
  if (memberState === undefined) return unknownPrefix
  const number = withPrefix.slice(2)
  if (memberState.pattern.test(number)) return Result.succeed({ value: withPrefix, memberState, number })
  return wrongStructure.get(memberState.prefix) ?? unknownPrefix
}

export const parseOption = (input: string): Option.Option<VatId> => Result.getSuccess(parse(input))

/** Parses a VAT ID that must be German, such as the VAT ID of a requester (rule 26). */
export const parseGerman = (input: string): Option.Option<VatId> => Option.filter(parseOption(input), isGerman)

export const isGerman = (vatId: VatId): boolean => vatId.memberState.prefix === "DE"
