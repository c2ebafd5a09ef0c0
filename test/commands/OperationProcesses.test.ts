import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Deferred, Effect, FileSystem, Layer, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { ChildProcess } from "effect/process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { spawned } from "#test/support/CommandLine.ts"
import * as EmbeddedService from "#test/support/EmbeddedService.ts"
import * as TcpServer from "#test/support/TcpServer.ts"
import { assert, layer } from "#test/support/Test.ts"

const ground = Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici, SecureRandom.layerWebCrypto)

class Embedded extends Context.Service<Embedded, Effect.Success<ReturnType<typeof EmbeddedService.start>>>()(
  "vatproof/test/Embedded"
) {}

const Listed = Schema.fromJsonString(
  Schema.Struct({ accounts: Schema.Array(Schema.Struct({ email: Schema.NullOr(Schema.String), plan: Schema.String })) })
)

const service = Layer.effect(Embedded, EmbeddedService.start("sandbox")).pipe(Layer.provideMerge(ground))

layer(service, { excludeTestServices: true })("an operator command in a separate process", (it) => {
  it.effect("reads the embedded database while a service runs on it", function* () {
    const { client, env } = yield* Embedded
    const key = yield* client.newKey
    const list = yield* spawned(env, "account", "list", "--json")
    const { accounts } = yield* Schema.decodeUnknownEffect(Listed)(list.stdout)
    assert.deepStrictEqual([list.code, list.stderr, accounts], [0, "", [{ email: null, plan: "free" }]])
    assert.strictEqual((yield* client.validate("ATU12345678", { key })).headers["x-service-usage"], "1/100")
  })

  it.effect("reads the embedded database after the service was stopped with it by closing the terminal", function* () {
    const { env, stop } = yield* Embedded
    assert.strictEqual(yield* stop, 0)
    // The server removes this file when it has stopped.
    assert.isFalse(existsSync(join(env.DATA_DIR, "postgres/cluster/data/postmaster.pid")))
    const { code, stderr, stdout } = yield* spawned(env, "usage", "check")
    const words = "OK: all 1 meters match the log. 1 units in "
    assert.deepStrictEqual([code, stderr, stdout.startsWith(words)], [0, "", true])
  })

  it.effect("exits with code 1 and one sentence if no database exists, and creates no database", function* () {
    const fs = yield* FileSystem.FileSystem
    const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-commands-" })
    const { code, stderr, stdout } = yield* spawned(EmbeddedService.environment(dataDir), "usage", "check")
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.match(
      stderr,
      /^vatproof: There is no database in \S+: start the service first, or set DATA_DIR or DATABASE_URL .*\n$/u
    )
    assert.deepStrictEqual(yield* fs.readDirectory(dataDir), [])
  })

  it.effect("exits with code 1 if its output cannot be written", function* () {
    const line = `"${process.execPath}" src/main.ts notary key --name any/log/0 > /dev/full 2> /dev/null`
    const { exitCode } = yield* ChildProcess.make("sh", ["-c", line], { stdin: "ignore" })
    assert.strictEqual(Number(yield* exitCode), 1)
  })

  it.effect("exits with code 130 if Ctrl-C interrupts it before its work is done", function* () {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-commands-" })
    const file = join(folder, "customers.csv")
    yield* fs.writeFileString(file, "custom_id,vat_id\n1,ATU12345678\n")
    const connected = yield* Deferred.make<void>()
    const silent = yield* TcpServer.make(() => Deferred.doneUnsafe(connected, Effect.void))
    const handle = yield* ChildProcess.make(
      process.execPath,
      ["src/main.ts", "batch", file, "--out", join(folder, "results.csv"), "--url", `http://127.0.0.1:${silent.port}`],
      { env: { ...EmbeddedService.environment(folder), API_KEY: "svc_live_any" }, extendEnv: true, stdin: "ignore" }
    )
    yield* Deferred.await(connected)
    process.kill(handle.pid, "SIGINT")
    assert.strictEqual(Number(yield* handle.exitCode), 130)
  })

  it.effect("exits with code 1 if its arguments are wrong", function* () {
    const { code, stderr } = yield* spawned({}, "account", "plan", "ada@example.com", "gold")
    assert.strictEqual(code, 1)
    assert.include(stderr, "gold")
    assert.notInclude(stderr, "Help requested")
  })
})
