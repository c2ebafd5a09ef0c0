import { existsSync, readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Logger, Schedule } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as AppConfig from "#infra/config/AppConfig.ts"
import * as CheckpointMirror from "#infra/security/CheckpointMirror.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"
import { temporaryFolder } from "#test/support/Auditing.ts"
import { assert, it, layer } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

const configured = (place: string) => Effect.flatMap(AppConfig.read({ CHECKPOINT_MIRROR: place }), Effect.succeed)

const until = (holds: () => boolean) =>
  Effect.repeat(Effect.sync(holds), { until: (is) => is, schedule: Schedule.spaced("20 millis") })

/** A server that accepts PUT requests, after it has rejected the first one. */
const server = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly taken: Array<string>; readonly close: () => void }>((resume) => {
    const taken: Array<string> = []
    let refused = false
    const listening = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        if (refused) taken.push(`${request.method} ${request.headers.authorization} ${Buffer.concat(parts).toString()}`)
        response.writeHead(refused ? 204 : 503).end()
        refused = true
      })
    })
    listening.listen(0, "127.0.0.1", () => {
      const address = listening.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(Effect.succeed({ url: `http://user:secret@127.0.0.1:${port}/log`, taken, close: () => listening.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

layer(Layer.merge(NodeServices.layer, NodeHttpClient.layerUndici), { excludeTestServices: true })(
  "A mirror of checkpoints",
  (it) => {
    it.effect(
      "stores the newest checkpoint and one per day in a folder; a replica without a local record reads the newest checkpoint",
      function* () {
        const folder = join(yield* temporaryFolder, "mirror")
        const config = yield* configured(folder)
        const offer = yield* Effect.provideService(CheckpointMirror.make, AppConfig.AppConfig, config)
        yield* offer("one")
        yield* until(() => existsSync(join(folder, "checkpoint")))
        assert.strictEqual(readFileSync(join(folder, "checkpoint"), "utf8"), "one")
        assert.isTrue(readdirSync(folder).some((name) => /^checkpoint-\d{4}-\d\d-\d\d$/u.test(name)))
        const { loadSeen } = yield* Effect.provideService(
          NotaryKeys.checkpointFiles({ signers: [], verifiers: [{ id: 1 }] }),
          AppConfig.AppConfig,
          config
        )
        assert.deepStrictEqual(yield* loadSeen, [{ note: "one", at: join(folder, "checkpoint") }])
      }
    )

    it.effect("receives the newest checkpoint at its URL, even after it has rejected a request", function* () {
      const { taken, url } = yield* server
      const offer = yield* Effect.provideService(CheckpointMirror.make, AppConfig.AppConfig, yield* configured(url))
      yield* offer("two")
      yield* until(() => taken.length > 0)
      assert.deepStrictEqual(taken, [`PUT Basic ${Buffer.from("user:secret").toString("base64")} two`])
    })

    it.effect("is rejected if its URL is plain HTTP to another machine", function* () {
      const { message } = yield* Effect.flip(configured("http://mirror.example/log"))
      assert.match(message, /CHECKPOINT_MIRROR: Expected a folder, or a URL that starts with https/u)
    })
  }
)

it.effect("A mirror of checkpoints receives the newest checkpoint after a minute, even if the clock was set back", function* () {
  const wallClock = yield* WallClock.make
  let pushes = 0
  const client = HttpClient.make((request) =>
    Effect.sync(() => ((pushes += 1), HttpClientResponse.fromWeb(request, new Response(null, { status: 204 }))))
  )
  const config = yield* configured("https://mirror.example/log")
  const offer = yield* CheckpointMirror.make.pipe(
    Effect.provideService(AppConfig.AppConfig, config),
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.provide(NodeServices.layer),
    wallClock.on
  )
  yield* offer("one")
  yield* TestClock.adjust("2 seconds")
  assert.strictEqual(pushes, 1)
  wallClock.setBack("1 hour")
  yield* offer("two")
  yield* TestClock.adjust("62 seconds")
  assert.strictEqual(pushes, 2)
})

it.effect("A mirror of checkpoints whose server rejects a checkpoint causes a warning with the HTTP status", function* () {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  const client = HttpClient.make((request) =>
    Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: 507 })))
  )
  const offer = yield* CheckpointMirror.make.pipe(
    Effect.provideService(AppConfig.AppConfig, yield* configured("https://user:secret@mirror.example/log")),
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.provide(Layer.merge(NodeServices.layer, Logger.layer([logger])))
  )
  yield* offer("one")
  yield* TestClock.adjust("30 seconds")
  assert.deepStrictEqual(lines, [
    "A checkpoint could not be copied to CHECKPOINT_MIRROR (its server responded with status 507); retrying with the newest checkpoint in a minute"
  ])
})
