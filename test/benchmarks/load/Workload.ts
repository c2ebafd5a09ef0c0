/** Standard workload: cached validations of 1,000 VAT IDs with 16 keys, alone or mixed with all other kinds of requests. */
import { Array as Arr, Effect, MutableRef } from "effect"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

export const keyCount = 16

/** Austrian VAT IDs, without the sandbox's magic numbers. */
export const vatIds = Arr.makeBy(1_000, (index) => `ATU10${100_000 + index * 7}`)

export type Keys = Arr.NonEmptyReadonlyArray<string>
export type Kinds = Arr.NonEmptyReadonlyArray<RequestKinds.Name>

/** Server under load, and the API keys of its clients. */
export interface Subject {
  readonly server: Pick<Servers.Server, "port" | "watched">
  readonly keys: Keys
  /** Path of the VIES API if the server is VIES itself. */
  readonly viesPath: string | null
}

/** Kinds of requests, and the number of connections. */
export interface Shape {
  readonly kinds: Kinds
  readonly connections: number
}

const everyKind = Arr.isReadonlyArrayNonEmpty(RequestKinds.mixed) ? RequestKinds.mixed : Arr.of("cached" as const)

/** Cached validations with a key and without parameters. */
export const cached = Effect.map(BenchOptions, ({ connections }): Shape => ({ kinds: ["cached"], connections }))

/** All kinds of the mix, by their weights. */
export const mix = Effect.map(BenchOptions, ({ mixConnections }): Shape => ({ kinds: everyKind, connections: mixConnections }))

/** Number of new VAT IDs reserved for each run. */
const newPerRun = 50_000
const newVatIds = MutableRef.make(0)

/** Returns the default plan of a load, and reserves new VAT IDs for its live look-ups. */
const planOf = ({ keys, server, viesPath }: Subject, { connections, kinds }: Shape): Load.LoadPlan => ({
  port: server.port,
  kinds,
  vatIds,
  keys,
  newFrom: MutableRef.getAndUpdate(newVatIds, (used) => used + newPerRun),
  connections,
  warmUpMs: 0,
  durationMs: 0,
  perSecond: null,
  requests: null,
  viesPath,
  watched: server.watched
})

/** Returns a load that can be repeated. `overrides` replaces fields of the default plan. */
export const load = (subject: Subject, shape: Shape, overrides: Partial<Load.LoadPlan>) =>
  Effect.suspend(() => Load.run({ ...planOf(subject, shape), ...overrides }))

/** Like `load`, but a failed request is counted in the result and does not fail the effect. */
export const attempt = (subject: Subject, shape: Shape, overrides: Partial<Load.LoadPlan>) =>
  Effect.suspend(() => Load.attempt({ ...planOf(subject, shape), ...overrides }))

/** Fills the cache of a server over 10 connections, because the service makes at most 10 concurrent calls per member state. */
export const fill = (subject: Subject) => load(subject, { kinds: ["cached"], connections: 10 }, { requests: vatIds.length })

/** Registers new keys and fills the cache. */
export const filled = Effect.fnUntraced(function* (server: Servers.Server) {
  const subject: Subject = { server, keys: yield* Servers.register(server, keyCount), viesPath: null }
  yield* fill(subject)
  return subject
})

/** Registers new keys, fills the cache and warms up with these kinds of requests. */
export const prepare = Effect.fnUntraced(function* (server: Servers.Server, kinds: Kinds = ["cached"]) {
  const subject = yield* filled(server)
  yield* warmUp(subject, kinds)
  return subject
})

/** Lets V8 compile hot code: the service's CPU time per request falls by a third within its first 200,000 requests. */
export const warmUp = (subject: Subject, kinds: Kinds) =>
  load(subject, { kinds, connections: 64 }, { durationMs: kinds.length > 1 ? 30_000 : 15_000 })

/** The simulated VIES, which gets the requests that the service would send to it. */
export const source = Effect.map(Sandbox.Sandbox, ({ port, viesBaseUrl }): Subject => ({
  server: { port, watched: {} },
  keys: ["none"],
  viesPath: new URL(viesBaseUrl).pathname
}))

const warmUpMs = 500

/** Runs a closed loop for the standard duration. */
export const closedLoop = Effect.fnUntraced(function* (subject: Subject, shape: Shape) {
  const { seconds } = yield* BenchOptions
  return yield* closedLoopFor(subject, shape, seconds * 1_000)
})

export const closedLoopFor = (subject: Subject, shape: Shape, durationMs: number) =>
  load(subject, shape, { warmUpMs, durationMs })

/** Runs a closed loop that measures from the first request. */
export const closedLoopFromStart = (subject: Subject, shape: Shape, durationMs: number) => load(subject, shape, { durationMs })

/** Runs an open loop, which sends requests at a fixed rate. */
export const openLoop = (subject: Subject, kinds: Kinds, perSecond: number, durationMs: number) =>
  load(subject, { kinds, connections: openLoopConnections }, { warmUpMs, durationMs, perSecond })

/** Enough connections to send each request at its due time, unless the server falls behind. */
const openLoopConnections = 256
