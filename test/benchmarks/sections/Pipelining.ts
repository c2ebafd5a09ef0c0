/** Effect of clients that never read, or never finish a request, on other clients and on the memory of the service. */
import { Effect, type Redacted, Schedule } from "effect"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Processes from "#test/benchmarks/Processes.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

interface Flood {
  readonly connections: number
  readonly head: string
  readonly unit: string
  readonly times: number
}

const request = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
const pipelined: Flood = { connections: 100, head: "", unit: `${request}\r\n`, times: 2_700 }
const partial: Flood = { connections: 4_000, head: `${request}X-Filler: `, unit: "a", times: 20_000 }

/** Load of a well-behaved client, which the section measures. The flood starts one second after this load. */
const clientConnections = 8
const perSecond = 20
const durationMs = 15_000
const floodDelay = "1 second"

const slowestMs = 1_000
const memoryLimitMb = 600

/** Measures the requests of a well-behaved client and the memory of the service during a flood. */
const measure = Effect.fnUntraced(function* (url: Redacted.Redacted, { connections, head, times, unit }: Flood) {
  const service = yield* Servers.service(url)
  const subject = yield* Workload.prepare(service)
  const args = [String(service.port), String(connections), String(times), unit, head]
  const before = ProcessorTime.openFiles(service.pid)
  let held = 0
  const watch = Effect.sync(() => {
    held = Math.max(held, ProcessorTime.openFiles(service.pid) - before - clientConnections)
  })
  yield* Effect.forkScoped(Effect.delay(Processes.start(Processes.program("load/Flood.ts", args)), floodDelay))
  yield* Effect.forkScoped(Effect.repeat(watch, Schedule.spaced("250 millis")))
  const client = yield* Workload.attempt(
    subject,
    { kinds: ["cached"], connections: clientConnections },
    { durationMs, perSecond }
  )
  return { client, held, memoryMb: ProcessorTime.memoryMb(service.pid, "VmHWM") }
}, Effect.scoped)

export const run = Effect.gen(function* () {
  const { database } = yield* PostgresServer
  const url = yield* database("pipelining")
  const ofPipelined = yield* measure(url, pipelined)
  const ofPartial = yield* measure(url, partial)
  const report: Report.SectionReport = {
    section: "pipelining",
    how:
      `${pipelined.connections} connections send ${pipelined.times} GET /health each and read no answer; ${partial.connections} others send ` +
      `a request's head of ${partial.times / 1_000} kB without its end; meanwhile a client sends ${perSecond} cached validations a second`,
    figures: [
      Report.atMost("pipelined: slowest answer to the client", ofPipelined.client.latencyMs.max, "ms", slowestMs),
      Report.atMost("pipelined: failures of the client's requests", ofPipelined.client.failures, "requests", 0),
      Report.plain("pipelined: memory of the service, maximum", ofPipelined.memoryMb, "MB"),
      Report.atMost("partial heads: memory of the service, maximum", ofPartial.memoryMb, "MB", memoryLimitMb),
      Report.plain("partial heads: slowest answer to the client", ofPartial.client.latencyMs.max, "ms"),
      Report.plain("partial heads: failures of the client's requests", ofPartial.client.failures, "requests"),
      Report.plain("partial heads: connections that the service held", ofPartial.held, "connections")
    ],
    details: []
  }
  return report
})
