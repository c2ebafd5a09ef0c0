/** The processes of a run. They start with a scope and end with it, also when the run is interrupted. */
import { Effect, MutableRef, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const projectRoot = join(import.meta.dirname, "../..")
export const serviceProgram = "src/main.ts"

/** Node's own flags as `npm start` has them. */
const serviceFlags = () => {
  const { scripts } = Schema.decodeUnknownSync(Package)(readFileSync(join(projectRoot, "package.json"), "utf8"))
  return [...scripts.start.matchAll(/ (--\S+)/gu)].map(([, flag = ""]) => flag)
}

const Package = Schema.fromJsonString(Schema.Struct({ scripts: Schema.Struct({ start: Schema.String }) }))

export interface ProcessOptions {
  /** Below the project's root. */
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

const command = ({ args, env, program }: ProcessOptions) =>
  ChildProcess.make(
    process.execPath,
    [...(program === serviceProgram ? serviceFlags() : []), join(projectRoot, program), ...args],
    {
      cwd: projectRoot,
      env,
      extendEnv: true,
      stdin: "ignore",
      killSignal: "SIGTERM",
      forceKillAfter: "20 seconds"
    }
  )

export interface Running {
  readonly pid: number
  /** Its exit, with what it had to say. */
  readonly ended: Effect.Effect<string>
}

/** Starts a process. */
export const start = Effect.fnUntraced(function* (options: ProcessOptions) {
  const handle = yield* command(options)
  const written = MutableRef.make("")
  yield* handle.all.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Effect.sync(() => MutableRef.update(written, (before) => (before + text).slice(-outputMax)))),
    Effect.ignore,
    Effect.forkScoped
  )
  const ended = Effect.map(Effect.ignore(handle.exitCode), () => written.current)
  const running: Running = { pid: handle.pid, ended }
  return running
})

/** The end of what a process wrote is what says why it ended. */
const outputMax = 4_000

/** Runs a program of this folder and gives back what it wrote. */
export const output = (program: string, ...args: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.flatMap(command({ program: `test/benchmarks/${program}`, args, env: {} }), (handle) =>
      Stream.mkString(Stream.decodeText(handle.all))
    )
  )
