import { Context, Effect, Fiber, Layer, Redacted, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { SqlClient } from "effect/sql"
import * as RunningService from "#test/support/RunningService.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"
import * as Network from "#test/support/Network.ts"

const look = Effect.fnUntraced(function* (port: number, path: string) {
  const http = yield* HttpClient.HttpClient
  const response = yield* http.get(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, body: yield* response.json }
})

/** A replica with unreachable sources, a database that can be cut off, and its admin port. */
class Administered extends Context.Service<
  Administered,
  {
    readonly service: RunningService.Replica
    readonly port: number
    readonly network: Effect.Success<ReturnType<typeof Network.make>>
  }
>()("vatproof/test/Administered") {}

const administered = Effect.gen(function* () {
  const port = yield* RunningService.freePort
  const unreachable = `http://127.0.0.1:${yield* RunningService.freePort}`
  const { url } = yield* TestDatabase
  const network = yield* Network.make(Redacted.value(url))
  const service = yield* RunningService.start({
    ADMIN_PORT: String(port),
    VIES_BASE_URL: unreachable,
    BZST_BASE_URL: unreachable,
    DATABASE_URL: network.url,
    SHUTDOWN_DELAY: "2s"
  })
  return { service, port, network }
})

const testLayer = Layer.effect(Administered, administered).pipe(Layer.provideMerge(RunningService.layerSharedGround))

layer(testLayer, { excludeTestServices: true })("the admin port", (it) => {
  it.effect("reports live and ready as soon as the service listens, even if all sources are unreachable", function* () {
    const { port } = yield* Administered
    assert.deepStrictEqual(yield* look(port, "/livez"), { status: 200, body: { status: "ok" } })
    const ready = { status: "ok", service: "serving", database: "ok" }
    assert.deepStrictEqual(yield* look(port, "/readyz"), { status: 200, body: ready })
  })

  it.effect("serves none of the pages of the service's port, and the service's port serves none of its pages", function* () {
    const { port, service } = yield* Administered
    const http = yield* HttpClient.HttpClient
    const statusOf = (path: string) => Effect.map(http.get(`http://127.0.0.1:${port}${path}`), ({ status }) => status)
    for (const path of ["/metrics", "/livez", "/readyz"]) {
      assert.strictEqual((yield* service.get(path)).status, 404, path)
      assert.strictEqual(yield* statusOf(path), 200, path)
      assert.strictEqual((yield* http.post(`http://127.0.0.1:${port}${path}`)).status, 405, path)
    }
    for (const path of ["/v1/status", "/health", "/docs", "/", "/metrics/x"]) assert.strictEqual(yield* statusOf(path), 404, path)
  })

  it.effect("is named in the error if another program listens on it", function* () {
    const { port } = yield* Administered
    const refused = yield* Effect.flip(RunningService.start({ ADMIN_PORT: String(port) }))
    assert.include(String(refused), `Cannot listen on 127.0.0.1:${port}: `)
  })

  it.effect("reports not ready during a database outage and ready afterwards; it reports live all the time", function* () {
    const { network, port } = yield* Administered
    yield* network.cut
    const away = { status: "unavailable", service: "serving", database: "away" }
    assert.deepStrictEqual(yield* look(port, "/readyz"), { status: 503, body: away })
    assert.strictEqual((yield* look(port, "/livez")).status, 200)
    yield* network.restore
    yield* Effect.repeat(look(port, "/readyz"), {
      schedule: Schedule.spaced("50 millis"),
      until: ({ status }) => status === 200
    })
  })

  it.effect("stays ready and tells a full disk of the database, until the next event is stored", function* () {
    const { port, service } = yield* Administered
    const sql = yield* SqlClient.SqlClient
    const register = service.post("/v1/register", { email: "disk@example.com" })
    yield* sql`CREATE FUNCTION public.disk_full() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$`
    yield* Effect.acquireUseRelease(
      sql`CREATE TRIGGER disk_full BEFORE INSERT ON vatproof.events FOR EACH STATEMENT EXECUTE FUNCTION public.disk_full()`,
      () => Effect.map(register, (refused) => assertProblem(refused, "SERVICE_UNAVAILABLE")),
      () => Effect.orDie(sql`DROP FUNCTION public.disk_full CASCADE`)
    )
    const full = { status: "ok", service: "serving", database: "full" }
    assert.containSubset(yield* look(port, "/readyz"), { status: 200, body: full })
    assert.strictEqual((yield* register).status, 201)
    assert.containSubset(yield* look(port, "/readyz"), { status: 200, body: { ...full, database: "ok" } })
  })

  it.effect("reports not ready after SIGTERM, while the service still answers", function* () {
    const { port, service } = yield* Administered
    const stopping = yield* Effect.forkScoped(service.stop)
    yield* Effect.repeat(look(port, "/readyz"), {
      schedule: Schedule.spaced("20 millis"),
      until: ({ status }) => status === 503
    })
    assert.containSubset((yield* look(port, "/readyz")).body, { service: "stopping", database: "ok" })
    assert.strictEqual((yield* service.get("/health")).status, 200)
    assert.strictEqual((yield* look(port, "/livez")).status, 200)
    yield* Fiber.join(stopping)
  })
})
