/** What the operator's commands have in common: the database they work on, and how they print. */
import { Console, DateTime, Effect, Logger, Option, References, type Schema } from "effect"
import { Flag } from "effect/cli"
import * as App from "#app/app.ts"
import { escaped, printable } from "#domain/PlainText.ts"
import { type BillingPeriod, billingPeriod } from "#domain/Usage.ts"

export const json = Flag.Boolean("json").pipe(Flag.withDefault(false), Flag.withDescription("Print JSON, for scripts"))

export const limit = Flag.Int("limit").pipe(
  Flag.withDefault(50),
  Flag.filter(
    (count) => count >= 1 && count <= 1_000,
    (count) => `Expected 1 to 1000, got ${count}`
  ),
  Flag.withDescription("How many to show, 1 to 1000")
)

/** A calendar month in UTC. */
export const month = Flag.String("month").pipe(
  Flag.filter(
    (text) => /^\d{4}-(?:0[1-9]|1[0-2])$/u.test(text),
    (text) => `Expected YYYY-MM, got "${text}"`
  ),
  Flag.optional,
  Flag.withDescription("A calendar month in UTC, as YYYY-MM; without it the current one")
)

export const periodOf = Effect.fnUntraced(function* (text: Option.Option<string>) {
  const start = Option.isSome(text) ? DateTime.makeUnsafe(`${text.value}-01T00:00:00Z`) : yield* DateTime.now
  return billingPeriod(start) satisfies BillingPeriod
})

/**
 * Runs a command on the database, beside a running service or without one. Standard output is the command's own: what else there is to
 * say goes to standard error.
 */
export const operate = <A, E, R>(command: Effect.Effect<A, E, R>) => quietly(Effect.provide(command, App.operations))

/** Only warnings are logged, and to standard error. */
export const quietly = <A, E, R>(command: Effect.Effect<A, E, R>) =>
  command.pipe(Effect.provideService(References.MinimumLogLevel, "Warn"), Effect.provideService(Logger.LogToStderr, true))

/** Prints `data` as JSON, or the words for people, which may quote what somebody else has written. */
export const print = (asJson: boolean, data: Schema.Json, words: string) =>
  Console.log(asJson ? escaped(JSON.stringify(data, null, 2)) : printable(words))

/** Says something beside what is printed. */
export const remark = (words: string) => Console.error(printable(words))

export const iso = (at: DateTime.Utc | null): string | null => (at === null ? null : DateTime.formatIso(at))
