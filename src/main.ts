/** Parses the command line and runs the command. After SIGINT, SIGTERM or SIGHUP, the service first completes its in-flight requests. */
// oxlint-disable-next-line import/no-unassigned-import -- it sets options of V8 and must run before the other imports allocate memory
import "#infra/server/HeapPolicy.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Logger, MutableRef, Option, Runtime } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { CliError } from "effect/cli"
import { run } from "#app/cli.ts"
import { printable } from "#domain/text/PlainText.ts"
import { version } from "#domain/kernel/Version.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { sentenceOf } from "#infra/postgres/SqlErrorCause.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as Logs from "#infra/telemetry/Logs.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"

const args = process.argv.slice(2)

/** True for `serve` and `sandbox`, which log their errors and exit with code 0 after a signal. Other commands print their errors. */
const isService = /^(?:--log-level[= ]\S+ )?(?:serve|sandbox)(?: |$)/u.test(args.join(" "))

/** Reports why the command failed: an expected error as one sentence, a defect with its stack trace. */
const report = (cause: Cause.Cause<unknown>) => {
  const words = Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logFatal("vatproof failed", cause)),
    onSome: (error) => {
      // The command-line parser has already printed this error, together with the help text.
      if (CliError.isCliError(error)) return Effect.void
      const sentence = printable(sentenceOf(error))
      return isService ? Effect.logFatal(sentence) : Console.error(`vatproof: ${sentence}`)
    }
  })
  return Effect.provideService(words, Logger.LogToStderr, true)
}

/**
 * The error message of a failed write to stdout, or null. A closed pipe (EPIPE) is not an error. A command whose output is lost must
 * fail, because the output can be a key that is shown only once.
 */
const outputError = MutableRef.make<string | null>(null)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") MutableRef.set(outputError, error.message)
})

const reportOutputError = Effect.suspend(() =>
  outputError.current === null ? Effect.void : Console.error(`vatproof: The output could not be written: ${outputError.current}`)
)

/** The exit code of a command that a signal interrupted: 128 + SIGINT, the convention of shells. */
const interrupted = 130

/**
 * Sets the exit code. A signal ends the service with code 0, even if output was lost. A signal ends any other command with code 130,
 * because its work, for example a verification, is incomplete. An error may have its own exit code; all others end with code 1.
 */
const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return onExit(isService ? 0 : interrupted)
  if (Exit.isFailure(exit)) return onExit(Runtime.getErrorExitCode(Cause.squash(exit.cause)))
  onExit(outputError.current === null ? 0 : 1)
}

const logs = Layer.unwrap(
  Effect.map(AppConfig.AppConfig, (config) =>
    Logs.layer(config.logs, Redaction.make(KnownSecrets.make(config)), process.stdout.isTTY)
  )
)

/** The logger that reports invalid settings. It reads only the settings for logging. */
const logsAlone = Layer.unwrap(
  Effect.map(AppConfig.logSettingsAlone, (settings) => Logs.layer(settings, Redaction.make([]), process.stdout.isTTY))
)

/** Runs the command and reports its errors in the configured log format. */
const program = run(args, version).pipe(
  Effect.tapCause(report),
  Effect.exit,
  Effect.provide(logs.pipe(Layer.provideMerge(Layer.mergeAll(AppConfig.layer, NodeServices.layer, SecureRandom.layerWebCrypto)))),
  Effect.tapCause((cause) => Effect.provide(report(cause), logsAlone)),
  Effect.flatten,
  // Waits for the next iteration of the event loop, because Node reports a failed write only then.
  Effect.ensuring(Effect.andThen(Effect.yieldNow, reportOutputError))
)

// Handles a closed terminal (SIGHUP) like SIGTERM. By default, a SIGHUP would kill this process and leave the embedded database
// running.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
