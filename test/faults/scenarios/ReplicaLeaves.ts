/** Replicas behind a load balancer start and stop: cleanly, one after the other, or by a crash. */
import { Effect, Exit, type Redacted, Scope } from "effect"
import * as Balancer from "#test/faults/Balancer.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import { freePort } from "#test/support/RunningService.ts"

/** Longer than the polling interval of the load balancer. */
const delay = "1s"

/** A replica with its own ports and scope: it can be replaced. */
const makePlace = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const port = yield* freePort
  const adminPort = yield* freePort
  const settings = { PORT: String(port), ADMIN_PORT: String(adminPort), SHUTDOWN_DELAY: delay }
  const occupy = Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const replica = yield* Scope.provide(Scenario.replica(url, settings), scope)
    return { ...replica, vacate: Scope.close(scope, Exit.void) }
  })
  return { target: { port, adminPort }, occupy }
})

const ground = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const first = yield* makePlace(server.url)
  const second = yield* makePlace(server.url)
  const replicas = [yield* first.occupy, yield* second.occupy] as const
  const balancer = yield* Balancer.make([first.target, second.target])
  yield* balancer.ready(2)
  return { server, places: [first, second] as const, replicas, balancer, key: yield* replicas[0].newKey }
})

/** Both are replaced, one after the other, with SIGTERM, as in a roll-out. Clients notice nothing. */
export const rolling = Effect.gen(function* () {
  const { balancer, key, places, replicas, server } = yield* ground
  const replace = Effect.fnUntraced(function* (index: 0 | 1) {
    yield* replicas[index].signal("SIGTERM")
    const code = yield* replicas[index].ended
    yield* replicas[index].vacate
    yield* places[index].occupy
    yield* balancer.ready(2)
    return `replica ${index + 1} ended with code ${code} and was replaced`
  })
  const report = yield* Scenario.run({
    name: "rolling",
    baseUrl: balancer.baseUrl,
    key,
    database: () => server.url,
    perSecond: 120,
    fault: Effect.all([replace(0), replace(1)])
  })
  return Scenario.withClaims(report, Scenario.allAnswered(report))
})

/** One of two is killed. Its requests in flight get no response; all others do, and each response has its event. */
export const killed = Effect.gen(function* () {
  const { balancer, key, replicas, server } = yield* ground
  const report = yield* Scenario.run({
    name: "killed",
    baseUrl: balancer.baseUrl,
    key,
    database: () => server.url,
    perSecond: 120,
    fault: replicas[0].signal("SIGKILL").pipe(Effect.andThen(Effect.delay(Effect.succeed([]), "2 seconds")))
  })
  const refused = report.outcomes.filter(({ status }) => status !== null && status !== 200)
  return Scenario.withClaims(report, { what: "a response, if there is one, is a 200", holds: refused.length === 0 })
})
