/** Processor time of processes and of the machine, from /proc; zero on systems other than Linux. */
// By themselves, because the load generator needs no more of the library, and starts some forty times in a run.
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { readdirSync, readFileSync } from "node:fs"

/** Linux counts in hundredths of a second. */
const microsPerTick = 10_000

const readText = (path: string) => Option.getOrElse(Result.getSuccess(Result.try(() => readFileSync(path, "utf8"))), () => "")

interface Process {
  readonly pid: number
  readonly parent: number
  /** In ticks: its own, and that of its children that have ended. */
  readonly ticks: number
  readonly ticksOfEnded: number
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
  return { pid, parent, ticks: user + system, ticksOfEnded: endedUser + endedSystem }
}

const namesIn = (path: string) =>
  Option.getOrElse(Result.getSuccess(Result.try(() => readdirSync(path))), (): Array<string> => [])

const all = (): ReadonlyArray<Process> =>
  namesIn("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .map((name) => processOf(Number(name)))

/** Of a process with its children, those that have ended as well. */
const ticksOf = (pid: number, processes: ReadonlyArray<Process>) =>
  processes
    .filter((one) => one.pid === pid || one.parent === pid)
    .reduce((sum, one) => sum + one.ticks + (one.pid === pid ? one.ticksOfEnded : 0), 0)

/** What the whole machine was busy with: everything but idle and waiting for disks. */
const busyTicks = () => {
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = readText("/proc/stat")
    .split("\n", 1)
    .join("")
    .split(/\s+/u)
    .slice(1)
    .map(Number)
  return user + nice + system + interrupts + softInterrupts
}

/** Where a table has the rest of the machine. */
export const elsewhere = "everything else"

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

/** In microseconds since a reading: this process, those that are watched, and the rest of the machine. */
export const since = (before: Reading) => {
  const { at, busy, own, ticks } = read(before.pids)
  const ownMicros = own.user + own.system - before.own.user - before.own.system
  const watched = Object.fromEntries(
    Object.entries(ticks).map(([name, now]) => [name, (now - (before.ticks[name] ?? 0)) * microsPerTick])
  )
  const known = Object.values(watched).reduce((sum, micros) => sum + micros, ownMicros)
  const others = Math.max(0, (busy - before.busy) * microsPerTick - known)
  return { seconds: (at - before.at) / 1_000, own: ownMicros, watched, others }
}

/** Memory in MB that a process has (`VmRSS`), or had at most (`VmHWM`). */
export const memoryMb = (pid: number, field: "VmRSS" | "VmHWM") =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "mu").exec(readText(`/proc/${pid}/status`))?.[1] ?? 0) / 1_000

/** The process that started this one: a server's backend belongs to its postmaster. */
export const parentOf = (pid: number) => processOf(pid).parent

export const programOf = (pid: number) => readText(`/proc/${pid}/comm`).trim()

/** How many files and connections a process has open. */
export const openFiles = (pid: number) => namesIn(`/proc/${pid}/fd`).length
