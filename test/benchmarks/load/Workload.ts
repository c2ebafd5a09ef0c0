/** What clients ask: cached validations of 1,000 VAT IDs by 16 keys, alone or mixed with all other kinds of request. */
import { Array as Arr, Effect, MutableRef } from "effect"
import * as Sandbox from "#infra/sandbox/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

export const keyCount = 16

/** Austrian ones that are none of the sandbox's magic numbers. */
export const vatIds = Arr.makeBy(1_000, (index) => `ATU10${100_000 + index * 7}`)

export type Keys = Arr.NonEmptyReadonlyArray<string>
export type Kinds = Arr.NonEmptyReadonlyArray<RequestKinds.Name>

/** Who is asked, with which keys. */
export interface Subject {
  readonly server: Pick<Servers.Server, "port" | "watched">
  readonly keys: Keys
  /** Where VIES' interface is, if the subject is VIES itself. */
  readonly viesPath: string | null
}

/** What is asked over how many connections. */
export interface Asked {
  readonly kinds: Kinds
  readonly connections: number
}

/** All kinds of request, by their weights. */
const everyKind = Arr.isReadonlyArrayNonEmpty(RequestKinds.names) ? RequestKinds.names : Arr.of("cached" as const)

/** Cached validations with a key and without parameters, over as many connections as the options say. */
export const plain = Effect.map(BenchOptions, ({ connections }): Asked => ({ kinds: ["cached"], connections }))

/** All kinds, over as many connections as the options say. */
export const mix = Effect.map(BenchOptions, ({ mixConnections }): Asked => ({ kinds: everyKind, connections: mixConnections }))

/** New VAT IDs that are set aside for each run. */
const newOfRun = 50_000
const newVatIds = MutableRef.make(0)

/** Each plan sets VAT IDs of its own aside for live look-ups. */
const planOf = ({ keys, server, viesPath }: Subject, { connections, kinds }: Asked): Load.LoadPlan => ({
  port: server.port,
  kinds,
  vatIds,
  keys,
  newFrom: MutableRef.getAndUpdate(newVatIds, (used) => used + newOfRun),
  connections,
  warmUpMs: 0,
  durationMs: 0,
  perSecond: null,
  requests: null,
  viesPath,
  watched: server.watched
})

/** A load that can be run again and again; `some` is what its plan says otherwise. */
export const load = (subject: Subject, asked: Asked, some: Partial<Load.LoadPlan>) =>
  Effect.suspend(() => Load.run({ ...planOf(subject, asked), ...some }))

/** The same where failures are a result. */
export const attempt = (subject: Subject, asked: Asked, some: Partial<Load.LoadPlan>) =>
  Effect.suspend(() => Load.attempt({ ...planOf(subject, asked), ...some }))

/** All VAT IDs in the cache of a server: as many at a time as the service asks a register at once. */
export const fill = (subject: Subject) => load(subject, { kinds: ["cached"], connections: 10 }, { requests: vatIds.length })

/** A service with fresh keys and a full cache. */
export const filled = Effect.fnUntraced(function* (server: Servers.Server) {
  const subject: Subject = { server, keys: yield* Servers.register(server, keyCount), viesPath: null }
  yield* fill(subject)
  return subject
})

/** The same, warmed up with these kinds of request. */
export const prepare = Effect.fnUntraced(function* (server: Servers.Server, kinds: Kinds = ["cached"]) {
  const subject = yield* filled(server)
  yield* warmUp(subject, kinds)
  return subject
})

/** Until V8 has compiled what is used often: the service's processor time a request falls by a third within its first 200,000 requests. */
export const warmUp = (subject: Subject, kinds: Kinds) =>
  load(subject, { kinds, connections: 64 }, { durationMs: kinds.length > 1 ? 30_000 : 15_000 })

/** The simulated source, asked what the service would ask it. */
export const source = Effect.map(Sandbox.Sandbox, ({ port, viesBaseUrl }): Subject => ({
  server: { port, watched: {} },
  keys: ["none"],
  viesPath: new URL(viesBaseUrl).pathname
}))

const warmUpMs = 500

/** As many requests as there are answers. */
export const flatOut = Effect.fnUntraced(function* (subject: Subject, asked: Asked) {
  const { seconds } = yield* BenchOptions
  return yield* flatOutFor(subject, asked, seconds * 1_000)
})

export const flatOutFor = (subject: Subject, asked: Asked, durationMs: number) => load(subject, asked, { warmUpMs, durationMs })

/** The same with everything measured, the first requests too. */
export const fromStart = (subject: Subject, asked: Asked, durationMs: number) => load(subject, asked, { durationMs })

/** As many requests as clients send that do not wait for answers. */
export const atRate = (subject: Subject, kinds: Kinds, perSecond: number, durationMs: number) =>
  load(subject, { kinds, connections: openConnections }, { warmUpMs, durationMs, perSecond })

/** Enough for every request to be sent when it is due, unless the server keeps falling behind. */
const openConnections = 256
