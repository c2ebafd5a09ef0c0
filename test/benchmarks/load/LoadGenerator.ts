/**
 * Sends requests over plain sockets and measures the answers: `node LoadGenerator.ts '<LoadPlan as JSON>'` prints a LoadResult.
 *
 * It is our own because it shares the machine with what it measures: autocannon, and Node's HTTP client with it, spends more processor time
 * on parsing a response than the service on making it. Here the bytes of every request are made before the run, and of a response only
 * the status and Content-Length are looked at. It is plain code, because it is started hundreds of times in a run, and a library takes longer to
 * load than some of these loads.
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
  /** The number of the request in flight, its supply, and when it was due. */
  request: number
  supply: RequestSupply.Supply
  dueAt: number
  received: Buffer | null
}

const now = () => performance.now()

/** The supplies of all kinds, in their order of requests. */
const suppliesOf = (plan: LoadPlan) => {
  const authority = `${host}:${plan.port}`
  const supplies = new Map(plan.kinds.map((kind) => [kind, RequestSupply.make(plan, authority, kind)]))
  return RequestKinds.order(plan.kinds).flatMap((kind) => supplies.get(kind) ?? [])
}

/** The state of the run: the next request, the free connections, and the measurements. */
const makeRun = (plan: LoadPlan, done: (result: LoadResult) => void) => {
  const supplies = suppliesOf(plan)
  const [firstSupply] = supplies
  const { durationMs, perSecond, requests, warmUpMs, watched } = plan
  const measurements = Measurements.make(plan.kinds)
  const connections: Array<Connection> = []
  const lateness = Latencies.make()
  const each = new Float64Array(requests ?? 0)
  const idle: Array<Connection> = []
  const interval = perSecond === null ? 0 : 1_000 / perSecond
  const last = requests ?? (perSecond === null ? Number.MAX_SAFE_INTEGER : Math.ceil((warmUpMs + durationMs) / interval))
  let startsAt = 0
  let begin: ProcessorTime.Reading | null = null
  let next = 0
  let underWay = 0
  let answered = 0
  let failures = 0
  let firstFailure: string | null = null
  let isOver = false

  const isMeasured = (dueAt: number) => dueAt >= startsAt + warmUpMs

  /** Begins to measure as soon as the warm-up is over: the processor time that was used before is not counted. */
  const look = (at: number) => {
    if (begin === null && at >= startsAt + warmUpMs) begin = ProcessorTime.read(watched)
    const mayEnd = next >= last || (perSecond === null && at >= startsAt + warmUpMs + durationMs)
    // In an open loop the run waits for the answers of all due requests: a slow one must not be lost.
    if (!isOver && mayEnd && (underWay === 0 || (perSecond === null && requests === null))) finish()
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
            [ProcessorTime.elsewhere]: per(used.others)
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
      eachMs: [...each]
    })
  }

  const fail = (why: string) => {
    failures += 1
    firstFailure ??= why
  }

  const send = (connection: Connection, dueAt: number, at: number) => {
    connection.request = next
    connection.dueAt = dueAt
    if (isMeasured(dueAt)) lateness.add(at - dueAt)
    connection.supply = supplies[next % supplies.length] ?? connection.supply
    next += 1
    underWay += 1
    connection.socket.write(connection.supply.next())
  }

  /** Whether the free connection got a request. */
  const employ = (connection: Connection, at: number) => {
    const dueAt = perSecond === null ? at : startsAt + next * interval
    if (isOver || next >= last || dueAt > at) return false
    send(connection, dueAt, at)
    return true
  }

  const answer = (connection: Connection, response: Buffer) => {
    const at = now()
    const { dueAt, supply } = connection
    underWay -= 1
    if (!supply.accepts(response)) fail(response.toString("utf8"))
    if (begin !== null && isMeasured(dueAt)) {
      answered += 1
      measurements.add(supply.kind, at - dueAt, Math.floor((at - startsAt - warmUpMs) / 1_000))
    }
    if (connection.request < each.length) each[connection.request] = at - dueAt
    if (ResponseBytes.isLast(response)) renew(connection)
    else if (!employ(connection, at)) idle.push(connection)
    look(at)
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

  /** A server may end a connection after a response, as the service does after a thousand: a client opens another one. */
  const renew = (connection: Connection) => {
    connection.socket.destroy()
    connection.socket = connect({ port: plan.port, host, noDelay: true })
    attach(connection)
    connection.socket.once("connect", () => {
      if (!employ(connection, now())) idle.push(connection)
    })
  }

  const open = (socket: Socket) => {
    if (firstSupply === undefined) return
    const connection: Connection = { socket, request: 0, supply: firstSupply, dueAt: 0, received: null }
    connections.push(connection)
    attach(connection)
    idle.push(connection)
  }

  /** Gives the free connections what is due. */
  const employIdle = (at: number) => {
    for (let free = idle.pop(); free !== undefined; free = idle.pop()) {
      if (employ(free, at)) continue
      idle.push(free)
      break
    }
  }

  /**
   * Sends what is due, and looks again after a fraction of a millisecond: a timer of Node's has whole ones. The event loop waits a little
   * each time instead of spinning, because the processor is the service's as well.
   */
  const keepPace = () => {
    if (isOver) return
    const at = now()
    employIdle(at)
    look(at)
    Atomics.wait(cell, 0, 0, pauseMs)
    setImmediate(keepPace)
  }

  const start = () => {
    startsAt = now()
    look(startsAt)
    if (perSecond === null) employIdle(now())
    else keepPace()
  }

  return { open, start }
}

const cell = new Int32Array(new SharedArrayBuffer(4))
const pauseMs = 0.2

const mapValues = (record: Readonly<Record<string, number>>, map: (value: number) => number) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

/** All connections are open before the first request is sent. */
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

// The parent process has validated the plan. A socket error ends this process with a stack trace as its output.
const plan: LoadPlan = JSON.parse(process.argv[2] ?? "")
measure(plan)
