/**
 * Sends requests over plain sockets and measures the answers: `node LoadGenerator.ts '<LoadPlan as JSON>'` prints a LoadResult.
 *
 * It is our own because it shares the machine with what it measures: autocannon, and Node's HTTP client with it, spends more processor time
 * on parsing a response than the service on making it. Here the bytes of every request are made before the run, and of a response only
 * the status and Content-Length are looked at. It is plain code, because it is started some forty times in a run, and a library takes longer to
 * load than some of these loads.
 */
import { connect, type Socket } from "node:net"
import type { LoadPlan, LoadResult } from "#test/benchmarks/load/Load.ts"
import * as Latencies from "#test/benchmarks/load/Latencies.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"

const host = "127.0.0.1"
const headersEnd = Buffer.from("\r\n\r\n")
const digit = (byte: number | undefined) => (byte !== undefined && byte >= 48 && byte <= 57 ? byte - 48 : -1)

/** More would only fill the memory: after so many the list begins again. */
const maxPrepared = 100_000

const prepare = ({ keys, port, requests, vatIds, viesPath }: LoadPlan) =>
  Array.from({ length: Math.min(requests ?? vatIds.length * keys.length, maxPrepared) }, (_, index) => {
    const vatId = vatIds[index % vatIds.length] ?? ""
    const key = keys[(index + Math.floor(index / vatIds.length)) % keys.length]
    return Buffer.from(
      viesPath === null
        ? `GET /v1/validate/${vatId} HTTP/1.1\r\nHost: ${host}:${port}\r\nX-Api-Key: ${key}\r\n\r\n`
        : viesCheck(`${host}:${port}`, viesPath, vatId)
    )
  })

const viesCheck = (authority: string, path: string, vatId: string) => {
  const body = JSON.stringify({ countryCode: vatId.slice(0, 2), vatNumber: vatId.slice(2) })
  const headers = `Host: ${authority}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  return `POST ${path}/check-vat-number HTTP/1.1\r\n${headers}\r\n\r\n${body}`
}

/** How many bytes the response at the start of `bytes` has in all; null as long as its headers are not complete. */
const lengthOf = (bytes: Buffer): number | null => {
  const end = bytes.indexOf(headersEnd)
  if (end < 0) return null
  // Content-Length however it is written: no other header of ours ends in "ength: ".
  const name = bytes.indexOf("ength: ", 0, "latin1")
  if (name < 0) return end + headersEnd.length
  let length = 0
  for (let at = name + 7; digit(bytes[at]) >= 0; at += 1) length = length * 10 + digit(bytes[at])
  return end + headersEnd.length + length
}

interface Connection {
  readonly socket: Socket
  /** The number of the request under way, and when it was due. */
  request: number
  dueAt: number
  received: Buffer | null
}

const now = () => performance.now()

/** Holds the run: which request is next, which connections are free, and what was measured. */
const makeRun = (plan: LoadPlan, done: (result: LoadResult) => void) => {
  const prepared = prepare(plan)
  const { durationMs, perSecond, requests, warmUpMs, watched } = plan
  const latencies = Latencies.make()
  const lateness = Latencies.make()
  const each = new Float64Array(requests ?? 0)
  const idle: Array<Connection> = []
  const startsAt = now()
  const interval = perSecond === null ? 0 : 1_000 / perSecond
  const last = requests ?? (perSecond === null ? Number.MAX_SAFE_INTEGER : Math.ceil((warmUpMs + durationMs) / interval))
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
    // In an open loop the answers of all that was due are waited for: a slow one must not fall out.
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
    done({
      answered,
      seconds: used === null ? 0 : used.seconds,
      failures,
      firstFailure,
      latencyMs: latencies.summary(),
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
    const bytes = prepared[next % prepared.length]
    next += 1
    underWay += 1
    if (bytes !== undefined) connection.socket.write(bytes)
  }

  /** Whether the free connection got something to do. */
  const employ = (connection: Connection, at: number) => {
    const dueAt = perSecond === null ? at : startsAt + next * interval
    if (isOver || next >= last || dueAt > at) return false
    send(connection, dueAt, at)
    return true
  }

  const answer = (connection: Connection, response: Buffer) => {
    const at = now()
    underWay -= 1
    if (response.toString("latin1", 9, 12) !== "200") fail(response.toString("utf8"))
    if (begin !== null && isMeasured(connection.dueAt)) {
      answered += 1
      latencies.add(at - connection.dueAt)
    }
    if (connection.request < each.length) each[connection.request] = at - connection.dueAt
    if (!employ(connection, at)) idle.push(connection)
    look(at)
  }

  const receive = (connection: Connection, chunk: Buffer) => {
    const bytes = connection.received === null ? chunk : Buffer.concat([connection.received, chunk])
    const length = lengthOf(bytes)
    connection.received = length === null || bytes.length < length ? bytes : null
    if (connection.received === null) answer(connection, bytes)
  }

  const open = (socket: Socket) => {
    const connection: Connection = { socket, request: 0, dueAt: 0, received: null }
    socket.on("data", (chunk) => receive(connection, chunk))
    socket.on("close", () => {
      if (isOver) return
      fail("the connection was closed")
      finish()
    })
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
    look(now())
    if (perSecond === null) employIdle(now())
    else keepPace()
  }

  return { open, start }
}

const cell = new Int32Array(new SharedArrayBuffer(4))
const pauseMs = 0.2

const mapValues = (record: Readonly<Record<string, number>>, map: (value: number) => number) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

/** All connections stand before the first request is sent. */
const measure = (plan: LoadPlan) => {
  const run = makeRun(plan, (result) => {
    for (const each of sockets) each.destroy()
    console.log(JSON.stringify(result))
  })
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

// Whoever starts this has made sure that it is a plan. An error of a socket ends it with its trace, which is then what it said.
const plan: LoadPlan = JSON.parse(process.argv[2] ?? "")
measure(plan)
