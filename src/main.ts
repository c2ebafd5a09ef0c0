/** Parses the command and runs it. SIGINT, SIGTERM and SIGHUP stop it gracefully: in-flight requests end first. */
// oxlint-disable-next-line import/no-unassigned-import -- it sets options of V8 and must run before the other imports allocate memory
import "#infra/server/HeapPolicy.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Logger, MutableRef, Option, Predicate, type Runtime } from "effect"
import { SecureRandom } from "effect/crypto"
import { CliError, Command } from "effect/cli"
import { isSqlError } from "effect/sql/SqlError"
import { vatproof } from "#app/cli.ts"
import { printable } from "#domain/kernel/PlainText.ts"
import { version } from "#domain/kernel/Version.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { causeOf } from "#infra/postgres/Postgres.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as Logs from "#infra/telemetry/Logs.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"

/** Returns the message of an error; for a failed SQL statement the message of the database. */
const sentenceOf = (error: unknown) => {
  if (isSqlError(error)) return `The database rejected the command: ${causeOf(error)}`
  return Predicate.isError(error) ? error.message : String(error)
}

/** True for a command that runs the service. It logs its errors, and a signal ends it with success; other commands print their errors. */
const isService = /^(?:--log-level[= ]\S+ )?(?:serve|sandbox)(?: |$)/u.test(process.argv.slice(2).join(" "))

/** Reports why the command failed: an expected error as one sentence, a defect with its stack trace. */
const report = (cause: Cause.Cause<unknown>) => {
  const words = Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logFatal("vatproof failed", cause)),
    onSome: (error) => {
      // The parser has printed errors of the command line already, with the help.
      if (CliError.isCliError(error)) return Effect.void
      const sentence = printable(sentenceOf(error))
      return isService ? Effect.logFatal(sentence) : Console.error(`vatproof: ${sentence}`)
    }
  })
  return Effect.provideService(words, Logger.LogToStderr, true)
}

/**
 * The error of a failed write to stdout; null without one. A closed pipe is no error. The command must not succeed silently,
 * because the lost output may be a key that is shown only once.
 */
const outputError = MutableRef.make<string | null>(null)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") MutableRef.set(outputError, error.message)
})

const reportOutputError = Effect.suspend(() =>
  outputError.current === null ? Effect.void : Console.error(`vatproof: The output could not be written: ${outputError.current}`)
)

/** The exit code of a command that a signal interrupted, as shells set it for Ctrl-C. */
const interrupted = 130

/**
 * Sets the exit code. A graceful stop of the service is a success, even if output was lost. Any other command that is stopped has
 * not done its work, for example a verification.
 */
const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return onExit(isService ? 0 : interrupted)
  onExit(Exit.isSuccess(exit) && outputError.current === null ? 0 : 1)
}

const logs = Layer.unwrap(
  Effect.map(AppConfig.AppConfig, (config) =>
    Logs.layer(config.logs, Redaction.make(KnownSecrets.make(config)), process.stdout.isTTY)
  )
)

/** The logger for a start with invalid settings. It reads only the settings of logs. */
const logsAlone = Layer.unwrap(
  Effect.map(AppConfig.logSettingsAlone, (settings) => Logs.layer(settings, Redaction.make([]), process.stdout.isTTY))
)

/** Runs the command and reports its errors in the configured log format. */
const program = Command.run(vatproof, { version }).pipe(
  Effect.tapCause(report),
  Effect.exit,
  Effect.provide(logs.pipe(Layer.provideMerge(Layer.mergeAll(AppConfig.layer, NodeServices.layer, SecureRandom.layerWebCrypto)))),
  Effect.tapCause((cause) => Effect.provide(report(cause), logsAlone)),
  Effect.flatten,
  // Node reports a failed write in the next iteration of the event loop.
  Effect.ensuring(Effect.andThen(Effect.yieldNow, reportOutputError))
)

// Without this, a closed terminal would end the process at once and leave the embedded database running.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
