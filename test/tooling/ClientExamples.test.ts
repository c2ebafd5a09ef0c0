/** Runs the client examples in docs/examples. */
import { beforeEach } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { spawnSync } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, describe, layer } from "#test/support/Test.ts"

const folder = join(import.meta.dirname, "../../docs/examples")

/** Command of each example, and its output for a valid VAT ID. */
const languages = [
  { name: "curl", command: "sh", needs: "curl", file: "validate.sh", says: /"valid":true/u },
  {
    name: "JavaScript",
    command: process.execPath,
    needs: process.execPath,
    file: "validate.mjs",
    says: /^ATU12345678 is valid\n$/u
  },
  { name: "Python", command: "python3", needs: "python3", file: "validate.py", says: /^ATU12345678 is valid\n$/u },
  { name: "PHP", command: "php", needs: "php", file: "validate.php", says: /^ATU12345678 is valid\n$/u }
] as const

const isHere = (program: string) => spawnSync(program, ["--version"]).status === 0

const run = Effect.fnUntraced(function* (
  { command, file }: { readonly command: string; readonly file: string },
  env: { readonly VATPROOF_URL: string; readonly VATPROOF_KEY: string },
  ...vatIds: ReadonlyArray<string>
) {
  const handle = yield* ChildProcess.make(command, [join(folder, file), ...vatIds], { env, extendEnv: true, stdin: "ignore" })
  const written = handle.all.pipe(Stream.decodeText(), Stream.mkString)
  const [output, code] = yield* Effect.all([written, handle.exitCode], { concurrency: "unbounded" })
  return { output, code: Number(code) }
})

/** Starts a server that answers the first call with 503 and this code, and later calls with a validation. */
const unavailableOnce = Effect.fnUntraced(function* (code: string) {
  let calls = 0
  const server = createServer((_, response) => {
    calls += 1
    response.setHeader("content-type", "application/json")
    if (calls > 1) return response.end('{"valid":true,"vat_id":"ATU12345678"}')
    response.writeHead(503, { "retry-after": "1" })
    return response.end(`{"error":{"code":"${code}","message":"Later","request_id":"x"}}`)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  const address = yield* Effect.callback<AddressInfo | string | null>((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server.address())))
  })
  const port = address === null || typeof address === "string" ? 0 : address.port
  return { url: `http://127.0.0.1:${port}`, calls: () => calls }
})

layer(RunningService.layerShared(), { excludeTestServices: true })("the client examples", (it) => {
  describe.each(languages)("in $name", (language) => {
    const isMissing = !isHere(language.needs)
    beforeEach((context) => context.skip(isMissing, `skipped: ${language.needs} is not installed`))

    it.effect("validate a VAT ID, and report errors", function* () {
      const { baseUrl, newKey } = yield* RunningService.RunningService
      const env = { VATPROOF_URL: baseUrl, VATPROOF_KEY: yield* newKey }
      const valid = yield* run(language, env, "ATU12345678")
      assert.strictEqual(valid.code, 0, valid.output)
      assert.match(valid.output, language.says)
      const wrong = yield* run(language, env, "GB123456789")
      assert.notStrictEqual(wrong.code, 0)
      assert.include(wrong.output, "INVALID_VAT_ID")
    })

    it.effect("retry once after the wait that Retry-After asks for", function* () {
      const { calls, url } = yield* unavailableOnce("SERVICE_UNAVAILABLE")
      const { code, output } = yield* run(language, { VATPROOF_URL: url, VATPROOF_KEY: "svc_live_x" }, "ATU12345678")
      assert.strictEqual(code, 0, output)
      assert.strictEqual(calls(), 2)
    })

    it.effect("do not retry an outage of the sources, and end in one line without key, argument or service", function* () {
      const { calls, url } = yield* unavailableOnce("SOURCE_UNAVAILABLE")
      const env = { VATPROOF_URL: url, VATPROOF_KEY: "svc_live_x" }
      const outage = yield* run(language, env, "ATU12345678")
      assert.notStrictEqual(outage.code, 0)
      assert.strictEqual(calls(), 1)
      const ends = [
        yield* run(language, { ...env, VATPROOF_KEY: "" }, "ATU12345678"),
        yield* run(language, env),
        yield* run(language, { ...env, VATPROOF_URL: "http://127.0.0.1:1" }, "ATU12345678")
      ]
      for (const { code, output } of ends) {
        assert.notStrictEqual(code, 0)
        assert.match(output, /^[^\n]+\n+$/u)
      }
    })
  })

  it.effect("wait for a later answer, and for the results of a batch", function* (context) {
    context.skip(!isHere("curl"), "skipped: curl is not installed")
    const { baseUrl, newKey } = yield* RunningService.RunningService
    const env = { VATPROOF_URL: baseUrl, VATPROOF_KEY: yield* newKey }
    const later = yield* run({ command: "sh", file: "later.sh" }, env, "ATU12345678")
    assert.strictEqual(later.code, 0, later.output)
    assert.match(later.output, /"status":"final".*"valid":true/u)
    const batch = yield* run({ command: "sh", file: "batch.sh" }, env, join(folder, "list.csv"))
    assert.strictEqual(batch.code, 0, batch.output)
    assert.match(batch.output, /^"?1"?,.*ATU12345678.*\r?\n"?2"?,.*GB123456789/mu)
    for (const file of ["later.sh", "batch.sh"]) {
      const { code, output } = yield* run(
        { command: "sh", file },
        { ...env, VATPROOF_URL: "http://127.0.0.1:1" },
        join(folder, "list.csv")
      )
      assert.notStrictEqual(code, 0)
      assert.match(output, /^[^\n]+\n+$/u)
    }
  })
})
