/** Common parts of the scenarios: they start replicas, break something while a load runs, and report. */
import { Array as Arr, Effect, FileSystem, Redacted, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import * as Ledger from "#test/faults/Ledger.ts"
import * as Load from "#test/faults/Load.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

/** A condition that must hold, and whether it did. */
export interface Claim {
  readonly what: string
  readonly holds: boolean
}

/** The result of a scenario. */
export interface Trial {
  readonly claims: ReadonlyArray<Claim>
  readonly notes: ReadonlyArray<string>
}

/** The result of a scenario under load. */
export interface Report extends Trial {
  readonly outcomes: ReadonlyArray<Load.Outcome>
  readonly count: Ledger.Count
}

/** A replica with high limits and a signing key, in its own process on the database of `url`. */
export const replica = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  settings: RunningService.Settings = {},
  flags: ReadonlyArray<string> = []
) {
  const fs = yield* FileSystem.FileSystem
  const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" })
  return yield* RunningService.spawn({ NOTARY_KEY: notaryKey, DATA_DIR: dataDir, ...settings }, flags).pipe(
    Effect.provideService(TestDatabase, TestDatabase.of({ url, name: "faults" }))
  )
})

/** Starts a command of vatproof on the database of `url`; it is killed with the scope. */
export const start = (url: Redacted.Redacted, ...args: ReadonlyArray<string>) =>
  ChildProcess.make(process.execPath, ["src/main.ts", ...args], {
    cwd: join(import.meta.dirname, "../.."),
    env: { DATABASE_URL: Redacted.value(url), NOTARY_KEY: notaryKey },
    extendEnv: true,
    stdin: "ignore",
    killSignal: "SIGKILL"
  })

/** Runs a command of vatproof on the database of `url` and returns its output and its exit code. */
export const command = Effect.fnUntraced(function* (url: Redacted.Redacted, ...args: ReadonlyArray<string>) {
  const handle = yield* start(url, ...args)
  return { said: yield* Stream.mkString(Stream.decodeText(handle.all)), code: yield* handle.exitCode }
}, Effect.scoped)

export const migrate = (url: Redacted.Redacted) => command(url, "migrate")

/** `vatproof audit verify` finds nothing. */
export const audit = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const { code, said } = yield* command(url, "audit", "verify")
  const sentence = said.split("\n").find((line) => line.includes("The log")) ?? said.trim()
  const claim: Claim = { what: `audit verify: ${sentence}`, holds: code === 0 }
  return claim
})

/** Any 32 bytes: the log of a scenario needs no secrecy. */
const notaryKey = "c2NlbmFyaW9zIHNpZ24gd2l0aCB0aGlzIG9uZSBrZXk"

export interface Course<E, R> {
  readonly name: string
  /** The address for requests. */
  readonly baseUrl: string
  readonly key: string
  /** The database in which events are counted at the end. */
  readonly database: () => Redacted.Redacted
  /** Breaks something and repairs it, while the load runs. Returns notes. */
  readonly fault: Effect.Effect<ReadonlyArray<string>, E, R>
  readonly perSecond?: number
}

const quietTime = "5 seconds"

/** Phases: `before`, `fault`, `recovering` up to the first success after it, `after`. */
export const run = Effect.fnUntraced(function* <E, R>({ baseUrl, database, fault, key, name, perSecond = 80 }: Course<E, R>) {
  const load = yield* Load.make({ baseUrl, key, name, perSecond })
  yield* Effect.delay(load.phase("fault"), quietTime)
  const notes = yield* fault
  yield* load.phase("recovering")
  const recoveredMs = yield* load.recovered
  yield* load.phase("after")
  const outcomes = yield* Effect.delay(load.stop, quietTime)
  const count = yield* Ledger.count(database(), outcomes)
  const report: Report = {
    outcomes,
    count,
    claims: [...claimsOf(count), yield* audit(database()), ...calm(outcomes)],
    notes: [`the first request that was answered began and ended ${recoveredMs} ms after the end of the fault`, ...notes]
  }
  return report
})

/** Conditions that hold for every fault. */
export const claimsOf = (count: Ledger.Count): ReadonlyArray<Claim> => [
  { what: `each of ${count.acknowledged} acknowledged requests has its event (${count.lost} lost)`, holds: count.lost === 0 },
  { what: `no request has two events (${count.doubled} have)`, holds: count.doubled === 0 },
  {
    what: `the log is whole${count.defects.length === 0 ? "" : `: ${count.defects.join("; ")}`}`,
    holds: count.defects.length === 0
  }
]

const calm = (outcomes: ReadonlyArray<Load.Outcome>): ReadonlyArray<Claim> => {
  const disturbed = outcomes.filter(
    ({ endedIn, phase, status }) => phase === endedIn && (phase === "before" || phase === "after") && status !== 200
  )
  return [
    { what: `before and after, every request is answered with 200 (${disturbed.length} were not)`, holds: disturbed.length === 0 }
  ]
}

/** During a fault every response is an answer or a refusal with a Retry-After. */
export const onlyRefused = (report: Report): Claim => {
  const isRefusal = ({ code, saysWhen, status }: Load.Outcome) => status === 503 && code === "SERVICE_UNAVAILABLE" && saysWhen
  const others = report.outcomes.filter((outcome) => outcome.status !== 200 && !isRefusal(outcome))
  const kinds = Arr.dedupe(others.map(({ code, status }) => `${status} ${code}`)).join(", ")
  return {
    what: `every request gets a response: 200, or 503 SERVICE_UNAVAILABLE with Retry-After${others.length === 0 ? "" : ` (${others.length} got ${kinds})`}`,
    holds: others.length === 0
  }
}

/** Fails if no request was affected: the fault would prove nothing. */
export const felt = (report: Report): Claim => {
  const refused = report.outcomes.filter(({ status }) => status === 503).length
  return { what: `the fault was felt: ${refused} requests were refused`, holds: refused > 0 }
}

/** Refusals are fast: none takes longer than `limitMs`. */
export const refusedWithin = (report: Report, limitMs: number): Claim => {
  const refused = report.outcomes.filter(({ status }) => status === 503).map(({ durationMs }) => durationMs)
  const longest = Math.max(0, ...refused)
  return { what: `${refused.length} refusals take at most ${longest} ms (limit ${limitMs})`, holds: longest <= limitMs }
}

/** Fails if any client noticed the fault. */
export const allAnswered = (report: Report): Claim => {
  const failed = report.outcomes.filter(({ status }) => status !== 200)
  const kinds = Arr.dedupe(failed.map(({ phase, status }) => `${status} in ${phase}`)).join(", ")
  return {
    what: `all ${report.outcomes.length} requests are answered with 200${failed.length === 0 ? "" : ` (${failed.length} were not: ${kinds})`}`,
    holds: failed.length === 0
  }
}

export const withClaims = (report: Report, ...claims: ReadonlyArray<Claim>): Report => ({
  ...report,
  claims: [...report.claims, ...claims]
})
