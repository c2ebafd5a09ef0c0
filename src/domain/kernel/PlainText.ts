/** Short text of people and programs, as it can be stored and shown again. */
import { Schema } from "effect"

/** Control characters cannot be shown, and one of them not be stored (NUL, which Postgres' text and jsonb do not have). */
const controls = /\p{Cc}/u

/** Lone surrogates are half a character; U+FFFD is what stands for bytes that were no UTF-8. Nobody knows what was meant. */
const unreadable = /[\p{Cs}\uFFFD]/u

/** Why a text cannot be what its sender meant; undefined if it can. */
export const whyUnreadable = (text: string): string | undefined =>
  unreadable.test(text) ? "must be UTF-8, with no half characters in it" : undefined

/** What no text needs on a terminal, but line breaks. */
const steering = /(?!\n)\p{C}/gu

/** For a terminal, which what somebody else wrote must not steer: lines stay lines, and no other control character stays. */
export const printable = (text: string): string => text.replace(steering, "?")

/** The same for a text of JSON, which stays what it says. */
export const escaped = (json: string): string =>
  json.replace(steering, (character) =>
    character
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join("")
  )

/** Whole characters: what JSON Schema and people count, while `length` counts UTF-16 code units. */
export const characters = (text: string): number => Array.from(text).length

/** Text of `min` to `max` characters, all of them readable and none a control character. */
export const plainText = ({ max, min }: { readonly min: number; readonly max: number }) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => {
      if (controls.test(text)) return "must not contain control characters"
      const why = whyUnreadable(text)
      if (why !== undefined) return why
      return (characters(text) >= min && characters(text) <= max) || `must have ${min} to ${max} characters`
    }).annotate({ toJsonSchema: () => ({ minLength: min, maxLength: max }) })
  )
