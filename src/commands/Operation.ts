/** The common parts of operator commands: the database, the operator's name and reason, and the output. */
import { userInfo } from "node:os"
import { Console, DateTime, Effect, Logger, Option, References, type Schema } from "effect"
import { Flag } from "effect/cli"
import * as Operator from "#app/layers/Operator.ts"
import { escaped, printable } from "#domain/text/PlainText.ts"
import { noRequest, RequestContext } from "#domain/kernel/RequestContext.ts"
import { type BillingPeriod, billingPeriod } from "#domain/callers/BillingPeriod.ts"

export const json = Flag.Boolean("json").pipe(Flag.withDefault(false), Flag.withDescription("Print JSON, for scripts"))

export const limit = Flag.Int("limit").pipe(
  Flag.withDefault(50),
  Flag.filter(
    (count) => count >= 1 && count <= 1_000,
    (count) => `Expected 1 to 1000, got ${count}`
  ),
  Flag.withDescription("Number of rows, 1 to 1000")
)

export const month = Flag.String("month").pipe(
  Flag.filter(
    (text) => /^\d{4}-(?:0[1-9]|1[0-2])$/u.test(text),
    (text) => `Expected YYYY-MM, got "${text}"`
  ),
  Flag.optional,
  Flag.withDescription("A calendar month in UTC, as YYYY-MM. Default: the current one")
)

export const periodOf = Effect.fnUntraced(function* (text: Option.Option<string>) {
  const start = Option.isSome(text) ? DateTime.makeUnsafe(`${text.value}-01T00:00:00Z`) : yield* DateTime.now
  return billingPeriod(start) satisfies BillingPeriod
})

/**
 * Runs a command on the database, whether or not the service is running. Standard output contains only the command's result. Logs go to
 * standard error.
 */
export const operate = <A, E, R>(command: Effect.Effect<A, E, R>) => quietly(Effect.provide(command, Operator.operations))

/** Runs a command that logs warnings and errors only, to standard error. */
export const quietly = <A, E, R>(command: Effect.Effect<A, E, R>) =>
  command.pipe(Effect.provideService(References.MinimumLogLevel, "Warn"), Effect.provideService(Logger.LogToStderr, true))

/**
 * Matches email and IP addresses. The reason of a command must not contain them, because events, which record the reason, are never
 * erased.
 */
const address = /@|\b\d{1,3}(?:\.\d{1,3}){3}\b/u
const maxReason = 200

export const by = Flag.String("by").pipe(
  Flag.filter(
    (text) => /^[\w.\\-]{1,64}$/u.test(text),
    () => "Expected 1 to 64 of A-Z, a-z, 0-9, _, ., \\ and -: a user name, not an e-mail address"
  ),
  Flag.optional,
  Flag.withDescription("Your user name, for the log. Default: the user of the operating system")
)

export const reason = Flag.String("reason").pipe(
  Flag.filter(
    (text) => text.trim() !== "" && text.length <= maxReason && !/\p{Cc}/u.test(text) && !address.test(text),
    () => `Expected 1 to ${maxReason} characters without e-mail and IP addresses, because the log keeps them forever`
  ),
  Flag.withDescription("The reason. The log keeps it forever: do not name a person")
)

export const optionalReason = Flag.optional(reason)

/** The name of the operating system's user. A user without a name, as in some containers, is `uid-<number>`. */
const osUser = Effect.try(() => userInfo().username).pipe(Effect.orElseSucceed(() => `uid-${process.getuid?.() ?? "unknown"}`))

/** Runs a command whose events record the operator's name and the reason. */
export const asOperator = <A, E, R>(
  command: Effect.Effect<A, E, R>,
  flags: { readonly by: Option.Option<string>; readonly reason: string | Option.Option<string> }
) =>
  Effect.gen(function* () {
    const actor = Option.isSome(flags.by) ? flags.by.value : yield* osUser
    const given = typeof flags.reason === "string" ? flags.reason : Option.getOrNull(flags.reason)
    return yield* Effect.provideService(command, RequestContext, { ...noRequest, operator: { actor, reason: given } })
  })

/**
 * Prints `data` as JSON if `asJson` is true, otherwise prints `words`. Replaces control characters, because the output can contain
 * untrusted text.
 */
export const print = (asJson: boolean, data: Schema.Json, words: string) =>
  Console.log(asJson ? escaped(JSON.stringify(data, null, 2)) : printable(words))

/** Prints a message for the operator to standard error, apart from the command's result. */
export const remark = (words: string) => Console.error(printable(words))

export const iso = (at: DateTime.Utc | null): string | null => (at === null ? null : DateTime.formatIso(at))
