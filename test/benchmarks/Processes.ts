/** Child processes of a benchmark run. Each is stopped when its scope closes, even if the run is interrupted. */
import { Effect, MutableRef, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import * as Checkout from "#test/benchmarks/Checkout.ts"

export interface ProcessOptions {
  /** Name in error messages. */
  readonly name: string
  /** Working directory. */
  readonly root: string
  /** Arguments of Node: flags, the program, and the program's arguments. */
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

/** Returns the options to run the service of a checkout. */
export const service = (env: ProcessOptions["env"], checkout: Checkout.Checkout = Checkout.present): ProcessOptions => ({
  name: `vatproof in ${checkout.root}`,
  root: checkout.root,
  args: Checkout.serveArguments(checkout),
  env
})

/** Returns the options to run a program in test/benchmarks. */
export const program = (path: string, args: ReadonlyArray<string>, env: ProcessOptions["env"] = {}): ProcessOptions => ({
  name: path,
  root: Checkout.present.root,
  args: [join(import.meta.dirname, path), ...args],
  env
})

const command = ({ args, env, root }: ProcessOptions) =>
  ChildProcess.make(process.execPath, args, {
    cwd: root,
    env,
    extendEnv: true,
    stdin: "ignore",
    killSignal: "SIGTERM",
    forceKillAfter: "20 seconds"
  })

export interface Running {
  readonly pid: number
  /** Completes when the process exits, with the end of its output. */
  readonly ended: Effect.Effect<string>
}

export const start = Effect.fnUntraced(function* (options: ProcessOptions) {
  const handle = yield* command(options)
  const lastOutput = MutableRef.make("")
  yield* handle.all.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Effect.sync(() => MutableRef.update(lastOutput, (before) => (before + text).slice(-outputMax)))),
    Effect.ignore,
    Effect.forkScoped
  )
  const ended = Effect.map(Effect.ignore(handle.exitCode), () => lastOutput.current)
  const running: Running = { pid: handle.pid, ended }
  return running
})

/** Characters to keep from the end of the output, where the reason of a failure is. */
const outputMax = 4_000

/** Runs a program in test/benchmarks and returns its output. */
export const output = (path: string, ...args: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(command(program(path, args)), (handle) => Stream.mkString(Stream.decodeText(handle.all))))
