/** Parses the command and runs it. SIGINT and SIGTERM end it in order: in-flight requests first. */
// oxlint-disable-next-line import/no-unassigned-import -- it must run before the other imports allocate
import "#infra/server/HeapPolicy.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Logger, MutableRef, Option, Predicate, type Runtime } from "effect"
import { SecureRandom } from "effect/crypto"
import { CliError, Command } from "effect/cli"
import { isSqlError } from "effect/sql/SqlError"
import { vatproof } from "#app/cli.ts"
import { printable } from "#domain/kernel/PlainText.ts"
import { interfaceVersion } from "#http/Api.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { causeOf } from "#infra/postgres/Postgres.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as Logs from "#infra/telemetry/Logs.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"

/** Uses the server's own message for a failed statement. */
const sentenceOf = (error: unknown) => {
  if (isSqlError(error)) return `The database refused: ${causeOf(error)}`
  return Predicate.isError(error) ? error.message : String(error)
}

/** A service logs its errors; an operator's command prints them. */
const isService = ["serve", "sandbox"].includes(process.argv[2] ?? "")

/** Prints an expected error at start as one sentence for the operator; anything else is a defect with its stack trace. */
const report = (cause: Cause.Cause<unknown>) => {
  const words = Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logFatal("vatproof failed", cause)),
    onSome: (error) => {
      // The help has shown errors of the command line already.
      if (CliError.isCliError(error)) return Effect.void
      const sentence = printable(sentenceOf(error))
      return isService ? Effect.logFatal(sentence) : Console.error(`vatproof: ${sentence}`)
    }
  })
  return Effect.provideService(words, Logger.LogToStderr, true)
}

/** Why output could not be written, for example a key that is shown once. A closed pipe is not an error. */
const lost = MutableRef.make<string | null>(null)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") MutableRef.set(lost, error.message)
})

const reportLost = Effect.suspend(() =>
  lost.current === null ? Effect.void : Console.error(`vatproof: The output is lost: ${lost.current}`)
)

/** An orderly stop is a success, even if the log lost lines. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  const isStopped = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
  onExit(isStopped || (Exit.isSuccess(exit) && lost.current === null) ? 0 : 1)
}

const logs = Layer.unwrap(
  Effect.map(AppConfig.AppConfig, (config) =>
    Logs.layer(config.logs, Redaction.make(KnownSecrets.make(config)), process.stdout.isTTY)
  )
)

/** The log layer for invalid settings. */
const logsAlone = Layer.unwrap(
  Effect.map(AppConfig.logSettingsAlone, (settings) => Logs.layer(settings, Redaction.make([]), process.stdout.isTTY))
)

/** Reports errors in the configured log format. */
const program = Command.run(vatproof, { version: interfaceVersion }).pipe(
  Effect.tapCause(report),
  Effect.exit,
  Effect.provide(logs.pipe(Layer.provideMerge(Layer.mergeAll(AppConfig.layer, NodeServices.layer, SecureRandom.layerWebCrypto)))),
  Effect.tapCause((cause) => Effect.provide(report(cause), logsAlone)),
  Effect.flatten,
  // A failed write is reported one iteration of the event loop later.
  Effect.ensuring(Effect.andThen(Effect.yieldNow, reportLost))
)

NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
