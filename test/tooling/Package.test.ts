/** Builds the package, installs it into an empty folder, and runs the installed command. Needs the package registry. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Schedule, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpClient, HttpClientRequest } from "effect/http"
import { ChildProcess } from "effect/process"
import { freePort } from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-package-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Runs a program to its end. Returns its output. */
const run = (cwd: string, program: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(program, args, { cwd, encoding: "utf8" })
  assert.strictEqual(status, 0, `${program} ${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

const sizeOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))
const Receipt = Schema.Struct({ receipt_id: Schema.String })
const decodeReceipt = Schema.decodeUnknownEffect(Schema.Struct({ qualified_confirmation: Receipt }))
const decodeValid = Schema.decodeUnknownEffect(Schema.Struct({ valid: Schema.Boolean }))

const company = { company_name: "Musterhaus GmbH & Co KG", company_city: "musterort", requester_vat_id: "DE123456789" }

const platform = Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici, SecureRandom.layerWebCrypto)

layer(platform, { excludeTestServices: true })("the installed package", (it) => {
  it.effect(
    "runs the sandbox, renders a receipt, verifies the log, and leaves no process",
    function* () {
      const [tarball = ""] = run(projectRoot, "npm", "run", "--silent", "package").trim().split("\n").slice(-1)
      assert.isAtMost(statSync(join(projectRoot, tarball)).size, 2_000_000)
      const folder = yield* temporaryFolder
      run(folder, "npm", "init", "--yes")
      run(folder, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", join(projectRoot, tarball))
      assert.isAtMost(sizeOf(join(folder, "node_modules/vatproof")), 6_000_000)

      const port = yield* freePort
      const dataDir = join(folder, "data")
      const vatproof = join(folder, "node_modules/.bin/vatproof")
      const sandbox = yield* ChildProcess.make(vatproof, ["sandbox"], {
        cwd: folder,
        env: { PORT: String(port), DATA_DIR: dataDir },
        extendEnv: true,
        stdin: "ignore",
        stdout: "ignore",
        killSignal: "SIGINT"
      })
      const http = yield* HttpClient.HttpClient
      const get = (url: string, headers: Record<string, string> = {}) =>
        http.execute(HttpClientRequest.get(`http://127.0.0.1:${port}${url}`, { headers }))
      yield* get("/health").pipe(Effect.retry(Schedule.spaced("100 millis")), Effect.timeout("60 seconds"))
      const validated = yield* get("/v1/validate/ATU12345678")
      assert.isTrue((yield* decodeValid(yield* validated.json)).valid)

      const registration = HttpClientRequest.post(`http://127.0.0.1:${port}/v1/register`)
      const registered = yield* http.execute(HttpClientRequest.bodyJsonUnsafe(registration, { agent_id: "package" }))
      const { api_key } = yield* decodeKey(yield* registered.json)
      run(folder, "env", `DATA_DIR=${dataDir}`, vatproof, "account", "plan", "package", "business", "--reason", "first try")
      const confirmed = yield* get(`/v1/validate/DE123456789?${new URLSearchParams(company).toString()}`, {
        "x-api-key": api_key
      })
      const confirmation = yield* confirmed.json
      assert.strictEqual(confirmed.status, 200, JSON.stringify(confirmation))
      const { receipt_id } = (yield* decodeReceipt(confirmation)).qualified_confirmation
      const pdf = yield* get(`/v1/qualified-confirmations/${receipt_id}`, { "x-api-key": api_key, accept: "application/pdf" })
      assert.include(Buffer.from(yield* pdf.arrayBuffer).toString("latin1"), "%PDF-")
      run(folder, "env", `DATA_DIR=${dataDir}`, vatproof, "audit", "verify")

      yield* sandbox.kill({ killSignal: "SIGINT" })
      const left = readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith("postmaster.pid"))
      assert.deepStrictEqual(left, [])
      assert.isFalse(existsSync(`/proc/${sandbox.pid}`))
    },
    240_000
  )
})
