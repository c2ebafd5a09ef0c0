/** Validates short texts of users and programs, so that they can be stored and displayed. */
import { Schema } from "effect"

/** Control characters cannot be displayed, and Postgres cannot store NUL in text and jsonb. */
const controls = /\p{Cc}/u

/** Lone surrogates are half a character; U+FFFD replaces bytes that were not UTF-8. The intended text is unknown. */
const unreadable = /[\p{Cs}\uFFFD]/u

/** Returns why a text is not what its sender meant; undefined if it is readable. */
export const whyUnreadable = (text: string): string | undefined =>
  unreadable.test(text) ? "must be valid UTF-8, without half characters" : undefined

/** Characters that can control a terminal; line breaks are allowed. */
const steering = /(?!\n)\p{C}/gu

/** Replaces control characters except line breaks, to prevent terminal escape injection. */
export const printable = (text: string): string => text.replace(steering, "?")

/** Escapes the same characters in JSON text, which keeps its value. */
export const escaped = (json: string): string =>
  json.replace(steering, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("")
  )

/** Returns the number of characters as JSON Schema counts them; `length` counts UTF-16 code units. */
export const characters = (text: string): number => Array.from(text).length

/** Text of `min` to `max` characters, all readable and without control characters. */
export const plainText = ({ max, min }: { readonly min: number; readonly max: number }) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => {
      if (controls.test(text)) return "must not contain control characters"
      const why = whyUnreadable(text)
      if (why !== undefined) return why
      return (characters(text) >= min && characters(text) <= max) || `must have ${min} to ${max} characters`
    }).annotate({ toJsonSchema: () => ({ minLength: min, maxLength: max }) })
  )
