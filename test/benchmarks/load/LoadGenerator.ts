/**
 * Sends requests over plain sockets and measures the responses: `node LoadGenerator.ts '<LoadPlan as JSON>'` prints a LoadResult.
 *
 * The load generator shares the machine with the server under load, so it must use little CPU time. autocannon and Node's HTTP client spend
 * more CPU time on parsing a response than the service on creating it. This generator prepares the bytes of each request before the run,
 * and reads only the status and Content-Length of a response. It imports no library, because it starts hundreds of times in a run and a
 * library takes longer to load than some loads take to run.
 */
import { connect, type Socket } from "node:net"
import type { LoadPlan, LoadResult } from "#test/benchmarks/load/Load.ts"
import * as Latencies from "#test/benchmarks/load/Latencies.ts"
import * as Measurements from "#test/benchmarks/load/Measurements.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as RequestSupply from "#test/benchmarks/load/RequestSupply.ts"
import * as ResponseBytes from "#test/benchmarks/load/ResponseBytes.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"

const host = "127.0.0.1"

interface Connection {
  socket: Socket
  /** The number of the request in flight, the supply that created it, and its due time. */
  request: number
  supply: RequestSupply.Supply
  dueAt: number
  received: Buffer | null
}

const now = () => performance.now()

/** Returns the request supply of each step of the repeating order of kinds. */
const suppliesOf = (plan: LoadPlan) => {
  const authority = `${host}:${plan.port}`
  const supplies = new Map(plan.kinds.map((kind) => [kind, RequestSupply.make(plan, authority, kind)]))
  return RequestKinds.order(plan.kinds).flatMap((kind) => supplies.get(kind) ?? [])
}

/** State of a run: next request, idle connections, measurements. */
const makeRun = (plan: LoadPlan, done: (result: LoadResult) => void) => {
  const supplies = suppliesOf(plan)
  const [firstSupply] = supplies
  const { durationMs, perSecond, requests, warmUpMs, watched } = plan
  const measurements = Measurements.make(plan.kinds)
  const connections: Array<Connection> = []
  const lateness = Latencies.make()
  const eachMs = new Float64Array(requests ?? 0)
  const idle: Array<Connection> = []
  const interval = perSecond === null ? 0 : 1_000 / perSecond
  const last = requests ?? (perSecond === null ? Number.MAX_SAFE_INTEGER : Math.ceil((warmUpMs + durationMs) / interval))
  let startsAt = 0
  let begin: ProcessorTime.Reading | null = null
  let next = 0
  let inFlight = 0
  let answered = 0
  let failures = 0
  let firstFailure: string | null = null
  let isOver = false

  const isMeasured = (dueAt: number) => dueAt >= startsAt + warmUpMs

  /** Starts to measure CPU time when the warm-up ends, and finishes the run when it is complete. */
  const checkPhase = (at: number) => {
    if (begin === null && at >= startsAt + warmUpMs) begin = ProcessorTime.read(watched)
    const mayEnd = next >= last || (perSecond === null && at >= startsAt + warmUpMs + durationMs)
    // An open loop waits for all responses, because slow ones count too.
    if (!isOver && mayEnd && (inFlight === 0 || (perSecond === null && requests === null))) finish()
  }

  const finish = () => {
    isOver = true
    const used = begin === null ? null : ProcessorTime.since(begin)
    const per = (micros: number) => micros / Math.max(1, answered)
    const parts =
      used === null
        ? {}
        : {
            "load generator": per(used.own),
            ...mapValues(used.watched, per),
            [ProcessorTime.otherProcesses]: per(used.others)
          }
    for (const { socket } of connections) socket.destroy()
    const { all, byKind, seconds } = measurements.summary()
    done({
      answered,
      seconds: used === null ? 0 : used.seconds,
      failures,
      firstFailure,
      latencyMs: all,
      byKind,
      bySecond: seconds,
      latenessMs: lateness.summary(),
      cpuMicros: parts,
      eachMs: [...eachMs]
    })
  }

  const fail = (reason: string) => {
    failures += 1
    firstFailure ??= reason
  }

  const send = (connection: Connection, dueAt: number, at: number) => {
    connection.request = next
    connection.dueAt = dueAt
    if (isMeasured(dueAt)) lateness.add(at - dueAt)
    connection.supply = supplies[next % supplies.length] ?? connection.supply
    next += 1
    inFlight += 1
    connection.socket.write(connection.supply.next())
  }

  /** Sends the next request on an idle connection if the request is due. Returns whether it was sent. */
  const assign = (connection: Connection, at: number) => {
    const dueAt = perSecond === null ? at : startsAt + next * interval
    if (isOver || next >= last || dueAt > at) return false
    send(connection, dueAt, at)
    return true
  }

  const answer = (connection: Connection, response: Buffer) => {
    const at = now()
    const { dueAt, supply } = connection
    inFlight -= 1
    if (!supply.accepts(response)) fail(response.toString("utf8"))
    if (begin !== null && isMeasured(dueAt)) {
      answered += 1
      measurements.add(supply.kind, at - dueAt, Math.floor((at - startsAt - warmUpMs) / 1_000))
    }
    if (connection.request < eachMs.length) eachMs[connection.request] = at - dueAt
    if (ResponseBytes.isLast(response)) reconnect(connection)
    else if (!assign(connection, at)) idle.push(connection)
    checkPhase(at)
  }

  const receive = (connection: Connection, chunk: Buffer) => {
    const bytes = connection.received === null ? chunk : Buffer.concat([connection.received, chunk])
    const length = ResponseBytes.lengthOf(bytes)
    connection.received = length === null || bytes.length < length ? bytes : null
    if (connection.received === null) answer(connection, bytes)
  }

  const attach = (connection: Connection) => {
    const { socket } = connection
    socket.on("data", (chunk) => receive(connection, chunk))
    socket.on("close", () => {
      if (isOver || connection.socket !== socket) return
      fail("the connection was closed")
      finish()
    })
  }

  /** Opens a new connection after the server closed one. The service does so after 1,000 responses. */
  const reconnect = (connection: Connection) => {
    connection.socket.destroy()
    connection.socket = connect({ port: plan.port, host, noDelay: true })
    attach(connection)
    connection.socket.once("connect", () => {
      if (!assign(connection, now())) idle.push(connection)
    })
  }

  const open = (socket: Socket) => {
    if (firstSupply === undefined) return
    const connection: Connection = { socket, request: 0, supply: firstSupply, dueAt: 0, received: null }
    connections.push(connection)
    attach(connection)
    idle.push(connection)
  }

  /** Sends due requests on the idle connections. */
  const assignIdle = (at: number) => {
    for (let free = idle.pop(); free !== undefined; free = idle.pop()) {
      if (assign(free, at)) continue
      idle.push(free)
      break
    }
  }

  /**
   * Sends due requests every 0.2 ms. Timers of Node have a resolution of 1 ms, so the event loop blocks for 0.2 ms instead.
   * It does not spin, because that would take CPU time from the service.
   */
  const sendDue = () => {
    if (isOver) return
    const at = now()
    assignIdle(at)
    checkPhase(at)
    Atomics.wait(cell, 0, 0, pauseMs)
    setImmediate(sendDue)
  }

  const start = () => {
    startsAt = now()
    checkPhase(startsAt)
    if (perSecond === null) assignIdle(now())
    else sendDue()
  }

  return { open, start }
}

const cell = new Int32Array(new SharedArrayBuffer(4))
const pauseMs = 0.2

const mapValues = (record: Readonly<Record<string, number>>, map: (value: number) => number) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

/** Opens all connections, then starts the run. */
const measure = (plan: LoadPlan) => {
  const run = makeRun(plan, (result) => console.log(JSON.stringify(result)))
  const sockets = Array.from({ length: plan.connections }, () => connect({ port: plan.port, host, noDelay: true }))
  let connected = 0
  for (const socket of sockets) {
    socket.once("connect", () => {
      connected += 1
      if (connected < sockets.length) return
      for (const each of sockets) run.open(each)
      run.start()
    })
  }
}

// The parent process has validated the plan. A socket error ends this process and prints a stack trace.
const plan: LoadPlan = JSON.parse(process.argv[2] ?? "")
measure(plan)
