/** What one client tries against another one's account, or against everybody. Each attack ends in a few seconds and needs no load. */
import { Clock, Effect, Fiber, Schedule } from "effect"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as People from "#test/support/People.ts"
import { ownLimits, type Settings } from "#test/support/RunningService.ts"
import type { Reply, ServiceClient } from "#test/support/ServiceClient.ts"

/** A replica with the limits of everybody, and a user with a password. */
const ground = Effect.fnUntraced(function* (settings: Settings = {}) {
  const server = yield* PostgresServer.make()
  const service = yield* Scenario.replica(server.url, { ...ownLimits, SIGNUPS_PER_DAY: "100", ...settings })
  return { service, user: yield* People.newUser(service) }
})

const attacker = "203.0.113.66"
const owner = "198.51.100.7"

const timed = Effect.fnUntraced(function* <E, R>(request: Effect.Effect<Reply, E, R>) {
  const startedMs = yield* Clock.currentTimeMillis
  const { status } = yield* request
  return { status, ms: (yield* Clock.currentTimeMillis) - startedMs }
})

const statuses = (replies: ReadonlyArray<{ readonly status: number }>) =>
  Array.from(Map.groupBy(replies, ({ status }) => status))
    .toSorted(([one], [other]) => one - other)
    .map(([status, those]) => `${those.length} × ${status}`)
    .join(", ")

const median = (replies: ReadonlyArray<{ readonly ms: number }>) =>
  replies.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(replies.length / 2)] ?? 0

const logins = (service: ServiceClient, email: string) =>
  Effect.forEach(Array.from({ length: 15 }), () => timed(People.logIn(service, email, { from: owner })))

/** One client guesses a user's password until it is refused. The user logs in from elsewhere all the same. */
export const lockout = Effect.gen(function* () {
  const { service, user } = yield* ground()
  const guesses = yield* Effect.forEach(Array.from({ length: 30 }), (_, index) =>
    timed(People.logIn(service, user.email, { password: `guess number ${index}`, from: attacker }))
  )
  const owners = yield* logins(service, user.email)
  return {
    claims: [
      {
        what: `the client that guesses is refused after ten: ${statuses(guesses)}`,
        holds: statuses(guesses) === "10 × 401, 20 × 429"
      },
      { what: `the owner logs in from elsewhere: ${statuses(owners)}`, holds: owners.every(({ status }) => status === 200) }
    ],
    notes: []
  } satisfies Scenario.Trial
})

/** One client has a hundred logins under way all the time. It is told to wait, and others log in as before. */
export const flood = Effect.gen(function* () {
  const { service, user } = yield* ground()
  const before = yield* logins(service, user.email)
  const flooded: Array<Reply> = []
  const one = Effect.map(People.logIn(service, user.email, { from: attacker }), (reply) => flooded.push(reply))
  const flooding = yield* Effect.forkChild(
    Effect.forEach(Array.from({ length: 100 }), () => Effect.repeat(one, Schedule.spaced("2 seconds")), {
      concurrency: "unbounded"
    })
  )
  yield* Effect.repeat(
    Effect.sync(() => flooded.length),
    { schedule: Schedule.spaced("10 millis"), until: (count) => count >= 100 }
  )
  const meanwhile = yield* logins(service, user.email)
  yield* Fiber.interrupt(flooding)
  const refused = flooded.filter(({ status }) => status !== 200)
  return {
    claims: [
      {
        what: `the client that floods gets 200, or 429 with Retry-After: ${statuses(flooded)}`,
        holds: refused.length > 0 && refused.every(({ headers, status }) => status === 429 && Number(headers["retry-after"]) >= 1)
      },
      { what: `another client logs in: ${statuses(meanwhile)}`, holds: meanwhile.every(({ status }) => status === 200) },
      {
        what: `and waits for its turn and no longer: ${median(before)} ms without the flood, ${median(meanwhile)} ms with it`,
        holds: median(meanwhile) <= 10 * median(before)
      }
    ],
    notes: []
  } satisfies Scenario.Trial
})
