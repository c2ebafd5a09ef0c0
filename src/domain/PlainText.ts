/** Short text of people and programs, as it can be stored and shown again. */
import { Schema } from "effect"

/** Control characters cannot be stored or shown, lone surrogates are half a character. */
const unusable = /[\p{Cc}\p{Cs}]/u

/** Whole characters: what JSON Schema and people count, while `length` counts UTF-16 code units. */
export const characters = (text: string): number => Array.from(text).length

/** Text of `min` to `max` characters, none of them a control character. */
export const plainText = ({ max, min }: { readonly min: number; readonly max: number }) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => {
      if (unusable.test(text)) return "must not contain control characters"
      return (characters(text) >= min && characters(text) <= max) || `must have ${min} to ${max} characters`
    }).annotate({ toJsonSchema: () => ({ minLength: min, maxLength: max }) })
  )
