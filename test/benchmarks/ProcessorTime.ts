/** CPU time of processes and of the machine, from /proc. Zero on systems other than Linux. */
// Imports single modules: the load generator uses this file and starts often, so it must load fast.
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { readdirSync, readFileSync } from "node:fs"

/** Linux counts CPU time in ticks of 10 ms. */
const microsPerTick = 10_000

const readText = (path: string) => Option.getOrElse(Result.getSuccess(Result.try(() => readFileSync(path, "utf8"))), () => "")

interface Process {
  readonly pid: number
  readonly parent: number
  /** CPU time of the process itself, in ticks. */
  readonly ticks: number
  /** CPU time of the process's exited children, in ticks. */
  readonly childTicks: number
}

const processOf = (pid: number): Process => {
  const text = readText(`/proc/${pid}/stat`)
  // The second field is the program's name in parentheses, which may contain anything.
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number)
  const [, parent = 0] = fields
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
  return { pid, parent, ticks: user + system, childTicks: endedUser + endedSystem }
}

const namesIn = (path: string) =>
  Option.getOrElse(Result.getSuccess(Result.try(() => readdirSync(path))), (): Array<string> => [])

const all = (): ReadonlyArray<Process> =>
  namesIn("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .map((name) => processOf(Number(name)))

/** Returns the CPU time of a process, its running children and its exited children, in ticks. */
const ticksOf = (pid: number, processes: ReadonlyArray<Process>) =>
  processes
    .filter((one) => one.pid === pid || one.parent === pid)
    .reduce((sum, one) => sum + one.ticks + (one.pid === pid ? one.childTicks : 0), 0)

/** Returns the CPU time of the whole machine in ticks, without idle time and waits for disks. */
const busyTicks = () => {
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = readText("/proc/stat")
    .split("\n", 1)
    .join("")
    .split(/\s+/u)
    .slice(1)
    .map(Number)
  return user + nice + system + interrupts + softInterrupts
}

/** Report label of the CPU time of all processes that a benchmark does not measure separately. */
export const otherProcesses = "everything else"

export interface Reading {
  readonly at: number
  readonly own: NodeJS.CpuUsage
  readonly busy: number
  readonly pids: Readonly<Record<string, number>>
  readonly ticks: Readonly<Record<string, number>>
}

export const read = (pids: Readonly<Record<string, number>>): Reading => {
  const processes = all()
  const ticks = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, ticksOf(pid, processes)]))
  return { at: performance.now(), own: process.cpuUsage(), busy: busyTicks(), pids, ticks }
}

/** Returns the CPU time since a reading, in microseconds: of this process, of the watched processes, and of all other processes. */
export const since = (before: Reading) => {
  const { at, busy, own, ticks } = read(before.pids)
  const ownMicros = own.user + own.system - before.own.user - before.own.system
  const watched = Object.fromEntries(
    Object.entries(ticks).map(([name, now]) => [name, (now - (before.ticks[name] ?? 0)) * microsPerTick])
  )
  const accounted = Object.values(watched).reduce((sum, micros) => sum + micros, ownMicros)
  const others = Math.max(0, (busy - before.busy) * microsPerTick - accounted)
  return { seconds: (at - before.at) / 1_000, own: ownMicros, watched, others }
}

/** Returns the memory of a process in MB: current (`VmRSS`) or maximum (`VmHWM`). */
export const memoryMb = (pid: number, field: "VmRSS" | "VmHWM") =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "mu").exec(readText(`/proc/${pid}/status`))?.[1] ?? 0) / 1_000

/** Returns the id of the parent process. The parent of a Postgres backend is the postmaster. */
export const parentOf = (pid: number) => processOf(pid).parent

export const programOf = (pid: number) => readText(`/proc/${pid}/comm`).trim()

/** Returns the number of open files and connections of a process. */
export const openFiles = (pid: number) => namesIn(`/proc/${pid}/fd`).length
