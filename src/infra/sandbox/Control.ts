/** The sandbox's controls (faults and settings), for tests in this process and for users over HTTP. */
import { Effect, Ref, Schema, SchemaIssue, Struct } from "effect"
import type { Decider } from "#infra/sandbox/FaultDecider.ts"
import { Fault } from "#infra/sandbox/Fault.ts"
import { faultsMax, type FaultScript } from "#infra/sandbox/FaultScript.ts"
import { magicNumbers } from "#infra/sandbox/MagicNumbers.ts"
import { initialSettings, Settings } from "#infra/sandbox/Settings.ts"
import { json, type Reply } from "#infra/sandbox/Simulator.ts"

const strict = { errors: "all", onExcessProperty: "error" } as const

const Script = Schema.Struct({
  seed: Schema.optionalKey(Schema.Int),
  faults: Schema.Array(Fault).check(Schema.isMaxLength(faultsMax))
})
const decodeScript = Schema.decodeUnknownEffect(Schema.fromJsonString(Script), strict)

const SomeSettings = Settings.mapFields(Struct.map(Schema.optionalKey))
/** The settings to change. Omitted settings stay unchanged. */
export type SomeSettings = typeof SomeSettings.Type
const decodeSettings = Schema.decodeUnknownEffect(Schema.fromJsonString(SomeSettings), strict)

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Returns a reply with status 400. Its message names each invalid field by the path of the field: `faults.0.latency_ms: Expected
 * …`.
 */
const refusal = (failure: Schema.SchemaError): Reply =>
  error(
    400,
    "VALIDATION_ERROR",
    issuesOf(failure.issue)
      .issues.slice(0, 20)
      .map(({ path, message }) =>
        path === undefined || path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`
      )
      .join("; ")
  )

const error = (status: number, code: string, message: string): Reply => json(status, code, { error: { code, message } })

/** The parts of the sandbox that its user can control. A reset restores `firstSettings`. */
export interface Parts {
  readonly script: FaultScript
  readonly decider: Decider
  readonly settings: Ref.Ref<Settings>
  readonly firstSettings: Settings
}

/** A request to the sandbox itself, not to a simulated source. */
export interface ControlRequest {
  readonly method: string
  readonly path: string
  readonly body: string
}

/** Clears the faults and the counters of flaky magic numbers, and restores the first settings. */
export const reset = (parts: Parts): Effect.Effect<void> =>
  Effect.all([parts.script.replace([], 1), parts.decider.clear, Ref.set(parts.settings, parts.firstSettings)], { discard: true })

/** Changes some settings and returns all settings. */
export const configure = (parts: Parts, some: SomeSettings): Effect.Effect<Settings> =>
  Ref.updateAndGet(parts.settings, (settings) => ({ ...settings, ...some }))

type Route = (parts: Parts, request: ControlRequest) => Effect.Effect<Reply>

const done = (body: object): Reply => json(200, "OK", body)

const faultList = (parts: Parts) => Effect.map(parts.script.list, (faults) => done({ faults }))

const putFaults: Route = (parts, request) =>
  decodeScript(request.body).pipe(
    Effect.flatMap(({ faults, seed }) => parts.script.replace(faults, seed ?? 1)),
    Effect.andThen(faultList(parts)),
    Effect.catchTag("SchemaError", (failure) => Effect.succeed(refusal(failure)))
  )

const patchSettings: Route = (parts, request) =>
  decodeSettings(request.body).pipe(
    Effect.flatMap((some) => configure(parts, some)),
    Effect.map(done),
    Effect.catchTag("SchemaError", (failure) => Effect.succeed(refusal(failure)))
  )

const magicTable = {
  magic_numbers: [...magicNumbers].map(([ending, { meaning }]) => ({ ending, example: `DE100${ending}`, meaning }))
}

const routes: ReadonlyMap<string, Readonly<Record<string, Route>>> = new Map([
  ["/sandbox/magic-numbers", { GET: () => Effect.succeed(done(magicTable)) }],
  [
    "/sandbox/faults",
    {
      GET: (parts: Parts) => faultList(parts),
      PUT: putFaults,
      DELETE: (parts: Parts) => Effect.andThen(parts.script.replace([], 1), faultList(parts))
    }
  ],
  ["/sandbox/settings", { GET: (parts: Parts) => Effect.map(Ref.get(parts.settings), done), PATCH: patchSettings }],
  ["/sandbox/reset", { POST: (parts: Parts) => Effect.andThen(reset(parts), Effect.succeed(done({ reset: true }))) }]
])

/**
 * Answers a request to the sandbox itself. An invalid body gets 400, an unknown path 404, a wrong method 405.
 * `endpoints` are the endpoints of the simulated sources, e.g. `POST /app/v1/abfrage`; `GET /sandbox` lists them, too.
 */
export const answer = (parts: Parts, request: ControlRequest, endpoints: ReadonlyArray<string>): Effect.Effect<Reply> => {
  const methods = routes.get(request.path)
  const route = methods !== undefined && Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
  if (route !== undefined) return route(parts, request)
  const all = [
    ...endpoints,
    ...[...routes].flatMap(([path, byMethod]) => Object.keys(byMethod).map((method) => `${method} ${path}`))
  ]
  if (request.method === "GET" && request.path === "/sandbox") return Effect.succeed(done({ endpoints: all }))
  const allowed = all
    .filter((endpoint) => endpoint.endsWith(` ${request.path}`))
    .map((endpoint) => endpoint.split(" ", 1).join(""))
  if (allowed.length === 0) {
    return Effect.succeed(error(404, "NOT_FOUND", "There is no endpoint at this path; GET /sandbox lists all endpoints"))
  }
  const reply = error(405, "METHOD_NOT_ALLOWED", `This path accepts only ${allowed.join(", ")}`)
  return Effect.succeed({ ...reply, headers: { ...reply.headers, allow: allowed.join(", ") } })
}

/** Returns the initial settings of a sandbox. */
export const settingsOf = (germanTargetsAdmitted: boolean | undefined): Settings => ({
  ...initialSettings,
  german_targets_admitted: germanTargetsAdmitted ?? initialSettings.german_targets_admitted
})
