/**
 * Runs the programs of the embedded Postgres as the required user.
 *
 * Uses node:child_process: Effect's ChildProcess can neither change the user nor write to a file that stays open after this
 * process ends.
 */
import { Effect, Option, Schema } from "effect"
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync } from "node:fs"
import { promisify } from "node:util"

/** The user of a program, if it differs from the user of this process. */
export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

interface ProgramOptions {
  readonly cwd: string
  readonly user: Option.Option<SystemUser>
  /** Written to the program's standard input. */
  readonly input?: string
}

/**
 * A program failed or did not start. `code` is the exit code, the text `a signal`, or the code of the error that prevented the
 * start, such as `EACCES`.
 */
export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  code: Schema.String,
  output: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `A program of the embedded Postgres ended with ${this.code}: ${this.output}`
  }
}

/** The environment of the programs. The service's environment may contain secrets, and its PGDATA or PGPORT would affect Postgres. */
const environment = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" }

const limits = { timeout: 120_000, maxBuffer: 1_048_576 }

const execute = promisify(execFile)

/**
 * Runs a program to its end and returns its output. Fails if the program runs longer than 2 minutes or prints more than 1 MiB. An
 * interruption ends the program.
 */
export const run = (file: string, args: ReadonlyArray<string>, options: ProgramOptions) =>
  Effect.tryPromise({
    try: (signal) => {
      const running = execute(file, args, { ...limits, signal, cwd: options.cwd, env: environment, ...identity(options.user) })
      // Ignores the write error if the program ends before it has read its input.
      running.child.stdin?.on("error", () => undefined)
      running.child.stdin?.end(options.input ?? "")
      return running
    },
    catch: programFailed
  }).pipe(Effect.map(({ stdout, stderr }) => stdout + stderr))

/**
 * Starts a program that outlives this process. It gets its own session, so that Ctrl-C in the terminal reaches only this process.
 * Its output is appended to the file `log`, because a pipe without a reader would block the program.
 */
export const spawnDetached = (file: string, args: ReadonlyArray<string>, options: ProgramOptions & { readonly log: string }) =>
  Effect.acquireUseRelease(
    Effect.try({ try: () => openSync(options.log, "a", 0o600), catch: programFailed }),
    (log): Effect.Effect<ChildProcess, ProgramFailed> =>
      Effect.tryPromise({
        try: () => {
          const child = spawn(file, args, {
            cwd: options.cwd,
            env: environment,
            detached: true,
            stdio: ["ignore", log, log],
            ...identity(options.user)
          })
          child.unref()
          return once(child, "spawn").then(() => child)
        },
        catch: programFailed
      }),
    (log) => Effect.sync(() => closeSync(log))
  )

const identity = (user: Option.Option<SystemUser>): Partial<SystemUser> => Option.getOrElse(user, () => ({}))

const Failure = Schema.Struct({
  code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Number]))),
  stdout: Schema.optionalKey(Schema.String),
  stderr: Schema.optionalKey(Schema.String)
})

const decodeFailure = Schema.decodeUnknownOption(Failure)

const programFailed = (cause: unknown) => {
  const failure = Option.getOrElse(decodeFailure(cause), (): typeof Failure.Type => ({}))
  const printed = `${failure.stdout ?? ""}${failure.stderr ?? ""}`
  return new ProgramFailed({ code: String(failure.code ?? "a signal"), output: printed === "" ? String(cause) : printed, cause })
}
