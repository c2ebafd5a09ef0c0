/** Validates short texts of users and programs, so that they can be stored and displayed. */
import { Schema } from "effect"

/** Control characters cannot be displayed, and Postgres cannot store NUL in text and jsonb. */
const controls = /\p{Cc}/u

/**
 * Lone surrogates (half a character), and U+FFFD, which decoders insert
 * for bytes that are not UTF-8. The intended text is unknown.
 */
const unreadable = /[\p{Cs}\uFFFD]/u

/** Returns an error message for a text with damaged characters; undefined if all are readable. */
export const whyUnreadable = (text: string): string | undefined =>
  unreadable.test(text) ? "must be valid UTF-8 without lone surrogates or U+FFFD" : undefined

/** Characters that can control a terminal, except line breaks. */
const terminalControls = /(?!\n)\p{C}/gu

/** Replaces control characters except line breaks, to prevent terminal escape injection. */
export const printable = (text: string): string => text.replace(terminalControls, "?")

/** Escapes control characters except line breaks in JSON text. The JSON value stays the same. */
export const escaped = (json: string): string =>
  json.replace(terminalControls, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("")
  )

/** Returns the number of characters as JSON Schema counts them; `length` counts UTF-16 code units. */
export const characters = (text: string): number => Array.from(text).length

/** Returns a schema for text of `min` to `max` characters without damaged or control characters. */
export const plainText = ({ max, min }: { readonly min: number; readonly max: number }) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => {
      if (controls.test(text)) return "must not contain control characters"
      const why = whyUnreadable(text)
      if (why !== undefined) return why
      return (characters(text) >= min && characters(text) <= max) || `must have ${min} to ${max} characters`
    }).annotate({ toJsonSchema: () => ({ minLength: min, maxLength: max }) })
  )
