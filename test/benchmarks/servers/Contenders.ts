/** The compared servers: the service, optionally another build of the service, and the baseline (BaselineServer.ts). */
import { Array as Arr, Effect, type Redacted } from "effect"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

export const titles = { service: "Vatproof", other: "other build", baseline: "Fastify" }
export type Name = keyof typeof titles

export interface Contender {
  readonly name: Name
  readonly pid: number
  readonly subject: Workload.Subject
  /** Runs a load, then waits until the server has finished its background work, so that it does not slow the next load. */
  readonly thenSettle: <A, E, R>(
    load: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | Effect.Error<Settling>, R | Effect.Services<Settling>>
}
type Settling = ReturnType<typeof Settled.wait>

type Urls = Readonly<Record<Name, Redacted.Redacted>>

/** Creates an empty database for each server. */
export const databases = Effect.fnUntraced(function* (section: string) {
  const { database } = yield* PostgresServer
  const urls: Urls = {
    service: yield* database(`${section}_service`),
    other: yield* database(`${section}_other`),
    baseline: yield* database(`${section}_baseline`)
  }
  return urls
})

const settlingOn =
  (url: Redacted.Redacted): Contender["thenSettle"] =>
  (load) =>
    Effect.tap(load, () => Settled.wait(url))

/** Starts all compared servers and warms them up with the given kinds of requests. */
export const start = Effect.fnUntraced(function* (urls: Urls, kinds: Workload.Kinds) {
  const { other } = yield* BenchOptions
  const service = yield* Servers.service(urls.service)
  const subject = yield* Workload.prepare(service, kinds)
  const contenders: Array<Contender> = [{ name: "service", pid: service.pid, subject, thenSettle: settlingOn(urls.service) }]
  if (other !== null) {
    const server = yield* Servers.service(urls.other, other)
    const thenSettle = settlingOn(urls.other)
    contenders.push({ name: "other", pid: server.pid, subject: yield* Workload.prepare(server, kinds), thenSettle })
  }
  const server = yield* Servers.baseline(urls.baseline, subject.keys)
  const baseline: Contender = {
    name: "baseline",
    pid: server.pid,
    subject: { server, keys: subject.keys, viesPath: null },
    thenSettle: (load) => load
  }
  yield* Workload.fill(baseline.subject)
  yield* Workload.warmUp(baseline.subject, kinds)
  yield* Settled.wait(urls.service)
  if (other !== null) yield* Settled.wait(urls.other)
  return { service, subject, contenders: Arr.append(contenders, baseline) }
})
