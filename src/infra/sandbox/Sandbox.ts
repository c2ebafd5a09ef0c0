/**
 * Simulates both official sources in one HTTP server, for tests and for users who test their own code against the service.
 *
 * It speaks the protocols of the sources, so the service uses its normal clients. `docs/sandbox.md` is its manual.
 */
import { createServer, type Server } from "node:http"
import { Context, Effect, FiberSet, Layer, Ref, Schema, type Scope } from "effect"
import { connectUrlOf } from "#infra/config/SettingForms.ts"
import * as Control from "#infra/sandbox/Control.ts"
import * as FaultDecider from "#infra/sandbox/FaultDecider.ts"
import * as SandboxHandler from "#infra/sandbox/SandboxHandler.ts"
import * as Endpoints from "#infra/sandbox/Endpoints.ts"
import type { Fault } from "#infra/sandbox/Fault.ts"
import * as FaultScript from "#infra/sandbox/FaultScript.ts"
import type { Settings } from "#infra/sandbox/Settings.ts"

/** The sandbox could not listen, usually because the port is in use. */
export class SandboxNotStarted extends Schema.TaggedError<SandboxNotStarted>()("SandboxNotStarted", {
  host: Schema.String,
  port: Schema.Int,
  cause: Schema.Defect()
}) {
  override get message() {
    return `The sandbox cannot listen on ${this.host}:${this.port}: probably another program already uses this port`
  }
}

/** Port 0 means any free port. `germanTargetsAdmitted` is true (the default) if requesters may query BZSt for German VAT IDs. */
export interface Options {
  readonly host: string
  readonly port: number
  readonly germanTargetsAdmitted?: boolean | undefined
}

/** A running sandbox: its addresses, and its controls for a test in the same process. */
export class Sandbox extends Context.Service<
  Sandbox,
  {
    readonly port: number
    readonly viesBaseUrl: string
    readonly bzstBaseUrl: string
    /** Base URL of the controls: `/faults`, `/settings`, `/magic-numbers`, `/reset`. */
    readonly controlBaseUrl: string
    /**
     * Replaces all scripted faults. An empty list removes all faults. The same `seed` makes `probability` select the same calls
     * again.
     */
    readonly script: (faults: ReadonlyArray<Fault>, seed?: number) => Effect.Effect<void>
    /** Changes some of the settings. */
    readonly configure: (some: Control.SomeSettings) => Effect.Effect<Settings>
    /** Clears faults and counters, and restores the first settings. */
    readonly reset: Effect.Effect<void>
  }
>()("vatproof/infra/sandbox/Sandbox") {}

/** Idle timeout of a connection. It is long, because an early close would look like an unscripted fault to the client. */
const keepAliveMs = 65_000
const connectionsMax = 10_000

const listen = (options: Options): Effect.Effect<Server, SandboxNotStarted> =>
  Effect.callback((resume) => {
    const server = createServer({ keepAliveTimeout: keepAliveMs })
    server.maxConnections = connectionsMax
    server.once("error", (cause) => resume(Effect.fail(new SandboxNotStarted({ host: options.host, port: options.port, cause }))))
    server.listen(options.port, options.host, () => resume(Effect.succeed(server)))
  })

/** Stops immediately and disconnects hanging clients. */
const close = (server: Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })

const portOf = (server: Server): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts the sandbox. It stops when the scope closes. */
export const make = (options: Options): Effect.Effect<Sandbox["Service"], SandboxNotStarted, Scope.Scope> =>
  Effect.gen(function* () {
    const firstSettings = Control.settingsOf(options.germanTargetsAdmitted)
    const script = yield* FaultScript.make
    const parts: Control.Parts = {
      script,
      decider: yield* FaultDecider.make(script),
      settings: yield* Ref.make(firstSettings),
      firstSettings
    }
    const handle = yield* SandboxHandler.make(parts)
    const server = yield* Effect.acquireRelease(listen(options), close)
    const run = yield* FiberSet.makeRuntime<never, void>()
    server.on("request", (request, response) => {
      run(handle(request, response))
    })
    const port = portOf(server)
    const base = connectUrlOf(options.host, port)
    return {
      port,
      viesBaseUrl: `${base}${Endpoints.viesPath}`,
      bzstBaseUrl: `${base}${Endpoints.bzstPath}`,
      controlBaseUrl: `${base}/sandbox`,
      script: (faults, seed = 1) => script.replace(faults, seed),
      configure: (some) => Control.configure(parts, some),
      reset: Control.reset(parts)
    }
  })

export const layer = (options: Options): Layer.Layer<Sandbox, SandboxNotStarted> => Layer.effect(Sandbox, make(options))
