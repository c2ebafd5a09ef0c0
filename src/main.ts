/** Parses the command and runs it. SIGINT and SIGTERM end it in order: in-flight requests first. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, Option, Predicate, type Runtime } from "effect"
import { SecureRandom } from "effect/crypto"
import { CliError, Command } from "effect/cli"
import { vatproof } from "#app/cli.ts"
import { interfaceVersion } from "#http/Api.ts"
import * as AppConfig from "#infra/AppConfig.ts"
import * as KnownSecrets from "#infra/telemetry/KnownSecrets.ts"
import * as Logs from "#infra/telemetry/Logs.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"

/** What is expected to go wrong at a start is one sentence for the operator; anything else is a defect with its trace. */
const report = (cause: Cause.Cause<unknown>) =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("vatproof failed", cause)),
    // Whatever is wrong with the command line stands above its help already.
    onSome: (error) =>
      CliError.isCliError(error)
        ? Effect.void
        : Console.error(`vatproof: ${Predicate.isError(error) ? error.message : String(error)}`)
  })

/** An ordered stop is a success. */
const teardown: Runtime.Teardown = (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)

const logs = Layer.unwrap(
  Effect.map(AppConfig.AppConfig, (config) =>
    Logs.layer(config.logs, Redaction.make(KnownSecrets.make(config)), process.stdout.isTTY)
  )
)

const program = Command.run(vatproof, { version: interfaceVersion }).pipe(
  Effect.provide(logs.pipe(Layer.provideMerge(Layer.mergeAll(AppConfig.layer, NodeServices.layer, SecureRandom.layerWebCrypto)))),
  Effect.tapCause(report)
)

NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
