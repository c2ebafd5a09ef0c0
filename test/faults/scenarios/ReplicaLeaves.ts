/** Rolling restart and crash of replicas behind a load balancer. */
import { Effect, Exit, type Redacted, Scope } from "effect"
import * as Balancer from "#test/faults/Balancer.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import { freePort } from "#test/support/RunningService.ts"

/** The replicas' SHUTDOWN_DELAY, which is longer than the polling interval of the load balancer. */
const delay = "1s"

/** Chooses the ports of a replica. `start` starts a replica on these ports, and can do so again after the replica has ended. */
const makeSlot = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const port = yield* freePort
  const adminPort = yield* freePort
  const settings = { PORT: String(port), ADMIN_PORT: String(adminPort), SHUTDOWN_DELAY: delay }
  const start = Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const replica = yield* Scope.provide(Scenario.replica(url, settings), scope)
    return { ...replica, close: Scope.close(scope, Exit.void) }
  })
  return { target: { port, adminPort }, start }
})

const setUp = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const first = yield* makeSlot(server.url)
  const second = yield* makeSlot(server.url)
  const replicas = [yield* first.start, yield* second.start] as const
  const balancer = yield* Balancer.make([first.target, second.target])
  yield* balancer.ready(2)
  return { server, slots: [first, second] as const, replicas, balancer, key: yield* replicas[0].newKey }
})

/** SIGTERM stops both replicas, one after the other, and new replicas replace them. Every request succeeds. */
export const rolling = Effect.gen(function* () {
  const { balancer, key, slots, replicas, server } = yield* setUp
  const replace = Effect.fnUntraced(function* (index: 0 | 1) {
    yield* replicas[index].signal("SIGTERM")
    const code = yield* replicas[index].ended
    yield* replicas[index].close
    yield* slots[index].start
    yield* balancer.ready(2)
    return `replica ${index + 1} exited with code ${code} and was replaced`
  })
  const report = yield* Scenario.run({
    name: "rolling",
    baseUrl: balancer.baseUrl,
    key,
    database: () => server.url,
    perSecond: 120,
    fault: Effect.all([replace(0), replace(1)])
  })
  return Scenario.withClaims(report, Scenario.allSucceeded(report))
})

/** One of two replicas is killed. Only requests in flight on it, or sent before the balancer notices, get no response. */
export const killed = Effect.gen(function* () {
  const { balancer, key, replicas, server } = yield* setUp
  const report = yield* Scenario.run({
    name: "killed",
    baseUrl: balancer.baseUrl,
    key,
    database: () => server.url,
    perSecond: 120,
    fault: replicas[0].signal("SIGKILL").pipe(Effect.andThen(Effect.delay(Effect.succeed([]), "2 seconds")))
  })
  return Scenario.withClaims(report, Scenario.answeredOrLost(report))
})
