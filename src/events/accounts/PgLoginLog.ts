/**
 * Records logins as events. Each successful login is an event, up to 60 per account and hour. Further successful logins, and all
 * refused logins, are only counted in memory. The counts become one event per hour for each account or client, so that clients
 * cannot fill the log. A killed replica loses the counts of its last hour.
 */
import { DateTime, Duration, Effect, Layer, Schedule } from "effect"
import { LoggedIn, LoginLog, LoginsCounted, loginStream } from "#domain/accounts/login/LoginLog.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

/** Maximum number of successful logins per account and hour that get an event each. */
const maxAlone = 60
/**
 * Maximum numbers of accounts and of clients that have counts of their own. These counts need about 200 bytes, and one event per
 * hour.
 */
const maxAccounts = 10_000
const maxClients = 500
const hour = Duration.hours(1)
const pollEvery = "1 minute"
const writesAtOnce = 64

/**
 * Counts of logins since `since`. `alone` is the number of successful logins that are recorded in an event each. `succeeded` is the
 * number of further successful logins.
 */
interface Tally {
  readonly since: DateTime.Utc
  alone: number
  succeeded: number
  refused: number
}

type Tallies = Map<string, Tally>

/** The key of the shared counts of all accounts, or all clients, beyond these maximum numbers. */
const untracked = ""

const tallyOf = (tallies: Tallies, max: number, subject: string, since: DateTime.Utc): Tally => {
  const key = tallies.has(subject) || tallies.size < max ? subject : untracked
  const tally = tallies.get(key) ?? { since, alone: 0, succeeded: 0, refused: 0 }
  tallies.set(key, tally)
  return tally
}

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const accounts: Tallies = new Map()
  const clients: Tallies = new Map()

  const succeeded = Effect.fnUntraced(function* (accountId: string) {
    const tally = tallyOf(accounts, maxAccounts, accountId, yield* DateTime.now)
    if (tally.alone >= maxAlone) {
      tally.succeeded += 1
      return
    }
    tally.alone += 1
    yield* events.appendFact(loginStream(accountId), LoggedIn.make({ account_id: accountId }))
  })

  const refused = Effect.fnUntraced(function* (client: string, accountId: string | null) {
    const now = yield* DateTime.now
    const tally = accountId === null ? tallyOf(clients, maxClients, client, now) : tallyOf(accounts, maxAccounts, accountId, now)
    tally.refused += 1
  })

  const write = (kind: "account_id" | "client", subject: string, { refused, since, succeeded }: Tally) => {
    const who = subject === untracked ? null : subject
    const event = LoginsCounted.make({ account_id: null, client: null, [kind]: who, since, refused, succeeded })
    return refused + succeeded === 0 ? Effect.void : events.appendFact(loginStream(who), event)
  }

  /**
   * Appends an event for each tally that began at `time` or earlier. If the append fails, the tally is kept for the next iteration.
   */
  const writeBefore = (time: DateTime.Utc) =>
    Effect.forEach(
      [
        ...[...accounts].map(([subject, tally]) => ({ kind: "account_id", tallies: accounts, subject, tally }) as const),
        ...[...clients].map(([subject, tally]) => ({ kind: "client", tallies: clients, subject, tally }) as const)
      ].filter(({ tally }) => DateTime.isLessThanOrEqualTo(tally.since, time)),
      ({ kind, subject, tallies, tally }) => {
        // Deletes the tally before the write, so that logins during the write are counted in a new tally.
        tallies.delete(subject)
        return Effect.catchTag(write(kind, subject, tally), "StoreUnavailable", () =>
          Effect.sync(() => {
            const next = tallies.get(subject)
            if (next === undefined) tallies.set(subject, tally)
            else [next.refused, next.succeeded] = [next.refused + tally.refused, next.succeeded + tally.succeeded]
          })
        )
      },
      { concurrency: writesAtOnce, discard: true }
    )

  const iteration = Effect.flatMap(DateTime.now, (now) => writeBefore(DateTime.subtractDuration(now, hour)))
  yield* Effect.addFinalizer(() => Effect.flatMap(DateTime.now, writeBefore))
  yield* Worker.loop("Storing the counts of refused logins", iteration, { schedule: Schedule.spaced(pollEvery) })
  return LoginLog.of({ succeeded, refused })
})

export const layer = Layer.effect(LoginLog, make)
