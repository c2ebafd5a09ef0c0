/** Runs commands of vatproof: in this process on the test's database, or in a new process. */
import { Effect, Exit, Option, Redacted, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { TestConsole } from "effect/testing"
import { join } from "node:path"
import { run } from "#app/cli.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

const textOf = Effect.map((lines: ReadonlyArray<unknown>) => lines.map(String).join("\n"))

/** Runs a command with additional settings. Returns its output, its stderr, and its error message if it failed. */
export const commandWith = Effect.fnUntraced(function* (
  settings: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
) {
  const { url } = yield* TestDatabase
  const config = yield* AppConfig.read({ DATABASE_URL: Redacted.value(url), ...settings })
  return yield* Effect.gen(function* () {
    const failure = Exit.findErrorOption(yield* Effect.exit(run(args, "0.0.0")))
    return {
      output: yield* textOf(TestConsole.logLines),
      remarks: yield* textOf(TestConsole.errorLines),
      failure: Option.getOrNull(Option.map(failure, ({ message }) => message))
    }
  }).pipe(Effect.provideService(AppConfig.AppConfig, config), Effect.provide(TestConsole.layer))
})

export const command = (...args: ReadonlyArray<string>) => commandWith({}, ...args)

/** Runs a command with --json and decodes its output. */
export const commandJson = Effect.fnUntraced(function* <A, I>(schema: Schema.Codec<A, I>, ...args: ReadonlyArray<string>) {
  const { output } = yield* command(...args, "--json")
  return yield* Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(output)
})

/** Runs a command in a new process. Returns its output, its stderr and its exit code. */
export const spawned = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) {
  const handle = yield* ChildProcess.make(process.execPath, ["src/main.ts", ...args], {
    cwd: join(import.meta.dirname, "../.."),
    env,
    extendEnv: true,
    stdin: "ignore",
    killSignal: "SIGKILL"
  })
  const text = (stream: typeof handle.stdout) => stream.pipe(Stream.decodeText(), Stream.mkString)
  const [stdout, stderr, code] = yield* Effect.all([text(handle.stdout), text(handle.stderr), handle.exitCode], {
    concurrency: "unbounded"
  })
  return { stdout, stderr, code: Number(code) }
})
