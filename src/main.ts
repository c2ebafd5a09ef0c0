/** Parses the command and runs it. SIGINT and SIGTERM end it in order: in-flight requests first. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Layer, Option, Predicate, type Runtime } from "effect"
import { SecureRandom } from "effect/crypto"
import { CliError, Command } from "effect/cli"
import { vatproof } from "#app/cli.ts"
import { interfaceVersion } from "#http/Api.ts"
import * as AppConfig from "#infra/AppConfig.ts"

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

const program = Command.run(vatproof, { version: interfaceVersion }).pipe(
  Effect.provide(Layer.mergeAll(AppConfig.layer, NodeServices.layer, SecureRandom.layerWebCrypto)),
  Effect.tapCause(report)
)

NodeRuntime.runMain(program, { disableErrorReporting: true, teardown })
