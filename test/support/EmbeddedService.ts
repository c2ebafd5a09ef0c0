/** A service with an embedded database, in its own process, as a user starts it in a clone. */
import { Effect, FileSystem, Schedule } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import { freePort } from "#test/support/RunningService.ts"
import * as ServiceClient from "#test/support/ServiceClient.ts"

/** The settings of a test process. An empty value overrides the machine's environment variable. */
export const environment = (dataDir: string) => ({
  DATA_DIR: dataDir,
  DATABASE_URL: "",
  SMTP_URL: "",
  PORT: "",
  ADMIN_PORT: "0",
  NOTARY_KEY: "",
  PUBLIC_URL: ""
})

/**
 * Starts `vatproof serve` or `vatproof sandbox` in a new folder. `stop` sends SIGHUP, as a closed terminal does, and returns the exit
 * code.
 */
export const start = Effect.fnUntraced(function* (command: "serve" | "sandbox") {
  const fs = yield* FileSystem.FileSystem
  const env = environment(yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-commands-" }))
  const port = yield* freePort
  const handle = yield* ChildProcess.make(process.execPath, ["src/main.ts", command], {
    cwd: join(import.meta.dirname, "../.."),
    env: { ...env, PORT: String(port) },
    extendEnv: true,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore"
  })
  const stop = Effect.suspend(() => {
    process.kill(handle.pid, "SIGHUP")
    return Effect.map(Effect.orDie(handle.exitCode), Number)
  })
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(handle.isRunning, (running) => (running ? Effect.exit(stop) : Effect.void)).pipe(Effect.ignore)
  )
  const client = yield* ServiceClient.make(`http://127.0.0.1:${port}`)
  yield* client.get("/health").pipe(Effect.retry(Schedule.spaced("50 millis")))
  return { env, client, stop }
})
