/** Common parts of the scenarios: start replicas, inject a fault under load, and report. */
import { Array as Arr, Effect, FileSystem, Redacted, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { join } from "node:path"
import * as Ledger from "#test/faults/Ledger.ts"
import * as Load from "#test/faults/Load.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** A condition that the scenario requires, and whether it held. */
export interface Claim {
  readonly statement: string
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

/** Starts a replica with high limits and a signing key, as a process of its own on the database of `url`. */
export const replica = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  settings: RunningService.Settings = {},
  flags: ReadonlyArray<string> = [],
  root?: string
) {
  const fs = yield* FileSystem.FileSystem
  const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" })
  const database = yield* TestDatabase.describe(url, "faults")
  return yield* RunningService.spawn({ NOTARY_KEY: notaryKey, DATA_DIR: dataDir, ...settings }, flags, root).pipe(
    Effect.provideService(TestDatabase.TestDatabase, database)
  )
})

/** Starts a vatproof command of the program in `root` on the database of `url`. The scope kills it. */
const startIn = (root: string, url: Redacted.Redacted, args: ReadonlyArray<string>) =>
  ChildProcess.make(process.execPath, ["src/main.ts", ...args], {
    cwd: root,
    env: { DATABASE_URL: Redacted.value(url), NOTARY_KEY: notaryKey },
    extendEnv: true,
    stdin: "ignore",
    killSignal: "SIGKILL"
  })

const projectRoot = join(import.meta.dirname, "../..")

export const start = (url: Redacted.Redacted, ...args: ReadonlyArray<string>) => startIn(projectRoot, url, args)

/** Runs a vatproof command of the program in `root` on the database of `url`. Returns output and exit code. */
export const commandIn = Effect.fnUntraced(function* (root: string, url: Redacted.Redacted, ...args: ReadonlyArray<string>) {
  const handle = yield* startIn(root, url, args)
  return { output: yield* Stream.mkString(Stream.decodeText(handle.all)), code: yield* handle.exitCode }
}, Effect.scoped)

export const command = (url: Redacted.Redacted, ...args: ReadonlyArray<string>) => commandIn(projectRoot, url, ...args)

export const migrate = (url: Redacted.Redacted) => command(url, "migrate")

/** Claims that `vatproof audit verify` has no findings. */
export const audit = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const { code, output } = yield* command(url, "audit", "verify")
  const sentence = output.split("\n").find((line) => line.includes("The log")) ?? output.trim()
  const claim: Claim = { statement: `audit verify: ${sentence}`, holds: code === 0 }
  return claim
})

/** A fixed key, because the log of a scenario needs no secret. */
export const notaryKey = "c2NlbmFyaW9zIHNpZ24gd2l0aCB0aGlzIG9uZSBrZXk"

export interface Plan<E, R> {
  readonly name: string
  readonly baseUrl: string
  readonly key: string
  /** Returns the URL of the database whose events are counted at the end. */
  readonly database: () => Redacted.Redacted
  /** Injects a fault and removes it. Returns notes. */
  readonly fault: Effect.Effect<ReadonlyArray<string>, E, R>
  readonly perSecond?: number
}

const steadyDuration = "5 seconds"

/** Runs a load in the phases `before`, `fault`, `recovering` (until the first success) and `after`. */
export const run = Effect.fnUntraced(function* <E, R>({ baseUrl, database, fault, key, name, perSecond = 80 }: Plan<E, R>) {
  const load = yield* Load.make({ baseUrl, key, name, perSecond })
  yield* Effect.delay(load.phase("fault"), steadyDuration)
  const notes = yield* fault
  yield* load.phase("recovering")
  const recoveredMs = yield* load.recovered
  yield* load.phase("after")
  const outcomes = yield* Effect.delay(load.stop, steadyDuration)
  yield* Ledger.settled(database())
  const count = yield* Ledger.count(database(), outcomes)
  const report: Report = {
    outcomes,
    count,
    claims: [...claimsOf(count), yield* audit(database()), undisturbed(outcomes), withoutDefect(outcomes)],
    notes: [
      `the first successful validation started and ended within ${recoveredMs} ms after the fault`,
      transactionsOf(outcomes),
      ...notes
    ]
  }
  return report
})

/** Returns the claims about the log that every scenario under load makes. */
export const claimsOf = (count: Ledger.Count): ReadonlyArray<Claim> => [
  { statement: `each of ${count.acknowledged} acknowledged requests has an event (${count.lost} lost)`, holds: count.lost === 0 },
  { statement: `no request has two events (${count.duplicates} have)`, holds: count.duplicates === 0 },
  {
    statement: `the log is consistent${count.defects.length === 0 ? "" : `: ${count.defects.join("; ")}`}`,
    holds: count.defects.length === 0
  }
]

const undisturbed = (outcomes: ReadonlyArray<Load.Outcome>): Claim => {
  const failed = outcomes.filter(
    ({ endedIn, phase, status }) => phase === endedIn && (phase === "before" || phase === "after") && !Load.isSuccess({ status })
  )
  return {
    statement: `before and after the fault every request succeeds (${kindsOf(failed)})`,
    holds: failed.length === 0
  }
}

const withoutDefect = (outcomes: ReadonlyArray<Load.Outcome>): Claim => {
  const failed = outcomes.filter(({ status }) => status === 500)
  return { statement: `no response is a 500 (${kindsOf(failed)})`, holds: failed.length === 0 }
}

/** Describes failed requests by kind, status and error code. */
const kindsOf = (failed: ReadonlyArray<Load.Outcome>) =>
  failed.length === 0
    ? "none failed"
    : Object.entries(Arr.groupBy(failed, ({ code, kind, phase, status }) => `${kind} in ${phase}: ${status} ${code}`))
        .map(([words, { length }]) => `${length} ${words}`)
        .join(", ")

const transactionsOf = (outcomes: ReadonlyArray<Load.Outcome>) => {
  const kinds = Object.entries(Arr.groupBy(outcomes, ({ kind }) => kind)).filter(([kind]) => kind !== "validation")
  const words = kinds.map(([kind, all]) => `${all.filter(Load.isSuccess).length} of ${all.length} ${kind}`)
  return `succeeded transactions: ${words.toSorted().join(", ")}`
}

/** Claims that each request succeeded, or got 503 with Retry-After. */
export const succeededOrRejected = (report: Report): Claim => {
  const isRejection = ({ code, hasRetryAfter, status }: Load.Outcome) =>
    status === 503 && code === "SERVICE_UNAVAILABLE" && hasRetryAfter
  const others = report.outcomes.filter((outcome) => !Load.isSuccess(outcome) && !isRejection(outcome))
  return {
    statement: `every request succeeds, or gets 503 SERVICE_UNAVAILABLE with Retry-After (${kindsOf(others)})`,
    holds: others.length === 0
  }
}

/** Claims that the fault affected at least one request. */
export const hadEffect = (report: Report): Claim => {
  const rejected = report.outcomes.filter(({ status }) => status === 503).length
  return { statement: `the fault had an effect: ${rejected} requests were rejected`, holds: rejected > 0 }
}

/** Maximum duration of a rejected transaction: it runs up to four statements one after the other, each with a timeout of 5 s. */
const transactionMs = 20_500

/** Claims that no rejection of a validation took longer than `limitMs`, and none of a transaction longer than `transactionMs`. */
export const rejectedWithin = (report: Report, limitMs: number): Claim => {
  const rejected = report.outcomes.filter(({ status }) => status === 503)
  const longest = (isValidation: boolean) =>
    Math.max(0, ...rejected.filter(({ kind }) => (kind === "validation") === isValidation).map(({ durationMs }) => durationMs))
  const [ofValidations, ofTransactions] = [longest(true), longest(false)]
  return {
    statement: `${rejected.length} rejections took at most ${ofValidations} ms (limit ${limitMs}), of transactions ${ofTransactions} ms (limit ${transactionMs})`,
    holds: ofValidations <= limitMs && ofTransactions <= transactionMs
  }
}

/** Claims that every request succeeded. */
export const allSucceeded = (report: Report): Claim => {
  const failed = report.outcomes.filter((outcome) => !Load.isSuccess(outcome))
  return { statement: `all ${report.outcomes.length} requests succeed (${kindsOf(failed)})`, holds: failed.length === 0 }
}

/** Claims that each response is a success, while requests may get no response. */
export const answeredOrLost = (report: Report): Claim => {
  const failed = report.outcomes.filter((outcome) => outcome.status !== null && !Load.isSuccess(outcome))
  return { statement: `every response is a success (${kindsOf(failed)})`, holds: failed.length === 0 }
}

export const withClaims = (report: Report, ...claims: ReadonlyArray<Claim>): Report => ({
  ...report,
  claims: [...report.claims, ...claims]
})
