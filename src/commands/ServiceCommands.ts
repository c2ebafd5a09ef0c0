/** `vatproof serve`, `vatproof sandbox` and `vatproof migrate`. */
import { Console, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as App from "#app/app.ts"
import { replicaOf } from "#app/layers/Sources.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import { urlOf } from "#infra/config/SettingForms.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as Sandbox from "#infra/sandbox/Sandbox.ts"
import * as Workers from "#infra/workers/Workers.ts"

/** Lets the sandbox take any free admin port, so that it does not conflict with a running service. */
const anyPort = 0

/** Maximum number of worker processes. A larger number is probably a typo. */
const maxWorkers = 64

const address = Effect.map(AppConfig.AppConfig, ({ host, port }) => urlOf(host, port))

export const serve = Command.make(
  "serve",
  {
    workers: Flag.Int("workers").pipe(
      Flag.filter(
        (count) => count >= 1 && count <= maxWorkers,
        () => `Expected 1 to ${maxWorkers} workers`
      ),
      Flag.withDefault(1),
      Flag.withDescription("Number of processes that share the port; use one per free CPU core")
    )
  },
  Effect.fnUntraced(function* ({ workers }) {
    const config = yield* AppConfig.AppConfig
    const base = yield* address
    const ready = Layer.effectDiscard(Effect.logInfo(`Vatproof listens on ${base}, docs: ${base}/docs`))
    const worker = Option.match(config.worker, { onNone: () => ({}), onSome: (number) => ({ worker: number }) })
    const named = { replica: replicaOf(config), ...worker }
    if (workers > 1 && !Workers.isWorker) return yield* Effect.annotateLogs(App.workers(workers), named)
    return yield* Effect.annotateLogs(Layer.launch(ready.pipe(Layer.provide(App.service()))), named)
  })
)

const welcome = (base: string, control: string) => `
Vatproof runs on ${base} with sandbox sources: nothing leaves this machine.

  curl ${base}/v1/validate/ATU12345678
  curl -X POST ${base}/v1/register -H 'content-type: application/json' -d '{"agent_id":"me"}'
  curl ${base}/v1/validate/DE123456789 -H 'X-Api-Key: <the key>'
  curl ${base}/v1/status

  Docs: ${base}/docs   Magic numbers and faults of the sandbox: docs/sandbox.md, ${control}/magic-numbers
`

export const sandbox = Command.make(
  "sandbox",
  {
    port: Flag.Int("sandbox-port").pipe(
      Flag.filter(
        (port) => port >= 0 && port <= 65_535,
        () => "Expected a port: 0 to 65535"
      ),
      Flag.withDefault(0),
      Flag.withDescription("Port of the simulated sources; 0 selects a free one")
    )
  },
  Effect.fnUntraced(function* ({ port }) {
    const base = yield* address
    const running = Layer.unwrap(
      Effect.gen(function* () {
        const simulated = yield* Sandbox.Sandbox
        const ready = Layer.effectDiscard(Console.log(welcome(base, simulated.controlBaseUrl)))
        return ready.pipe(Layer.provide(App.service(simulated, anyPort)))
      })
    )
    yield* Layer.launch(running.pipe(Layer.provide(Sandbox.layer({ host: "127.0.0.1", port }))))
  }, Effect.provide(AppConfig.layerSandbox))
)

export const migrate = Command.make(
  "migrate",
  {
    check: Flag.Boolean("check").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Apply nothing: name the files that would be applied, and exit with code 1 if there are any")
    )
  },
  Effect.fnUntraced(function* ({ check }) {
    if (check) return yield* Effect.andThen(Effect.scoped(Database.existingUrl), Console.log("The database is up to date."))
    const { applied, repaired } = yield* Database.migrate
    yield* Console.log(applied.length === 0 ? "The database is up to date." : `Applied: ${applied.join(", ")}`)
    for (const object of repaired.restored) yield* Console.log(`Restored, because it differed from this version's: ${object}`)
    for (const { message, object } of repaired.remaining)
      yield* Console.error(`Still differs from this version's, and an administrator must revert it: ${object}: ${message}`)
  })
)
