/** The processes of a run. They start with a scope and end with it, also when the run is interrupted. */
import { Effect, MutableRef, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import * as Checkout from "#test/benchmarks/Checkout.ts"

export interface ProcessOptions {
  /** Its name in messages. */
  readonly name: string
  /** The working directory. */
  readonly root: string
  /** Node's arguments: its flags, the program, and the program's arguments. */
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

/** The service of a checkout. */
export const service = (env: ProcessOptions["env"], checkout: Checkout.Checkout = Checkout.present): ProcessOptions => ({
  name: `vatproof in ${checkout.root}`,
  root: checkout.root,
  args: Checkout.serveArguments(checkout),
  env
})

/** A program of this folder. */
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
  /** Its exit, with its last output. */
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

/** The end of a process's output, which contains the reason of a failure. */
const outputMax = 4_000

/** Runs a program of this folder and returns its output. */
export const output = (path: string, ...args: ReadonlyArray<string>) =>
  Effect.scoped(Effect.flatMap(command(program(path, args)), (handle) => Stream.mkString(Stream.decodeText(handle.all))))
