/** Calls a service by the client in clients/typescript. */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { Context, Effect, Layer, MutableRef, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { type Args, type JsonOperation, type Options, vatproof, VatproofError } from "#client/index.ts"
import { operations } from "#client/types.ts"
import { layerSigned } from "#test/support/Auditing.ts"
import * as LostResponses from "#test/support/LostResponses.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

/** Validations with a lost response. */
const lossyCalls = 60

const folder = join(projectRoot, "clients/typescript")
const [valid, invalid, outage] = ["ATU12345678", "DE100999200", "DE100999900"]
const company = { company_name: "Muster GmbH", company_city: "Berlin", requester_vat_id: "DE811115368" }

/** Runs a call. Its rejection is the failure. */
const ask = <A>(call: () => Promise<A>) => Effect.tryPromise({ try: call, catch: (error) => error })

/** Runs a call that fails with a VatproofError. */
const refused = (call: () => Promise<unknown>) =>
  Effect.flatMap(Effect.flip(ask(call)), (error) => (error instanceof VatproofError ? Effect.succeed(error) : Effect.die(error)))

const collect = <A>(iterable: AsyncIterable<A>) => Stream.runCollect(Stream.fromAsyncIterable(iterable, (error) => error))

/** Builds the package as `npm pack` does, installed in a new folder. */
const install = Effect.fnUntraced(function* () {
  const target = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-client-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )
  const installed = join(target, "node_modules/@vatproof/client")
  mkdirSync(installed, { recursive: true })
  cpSync(join(folder, "package.json"), join(installed, "package.json"))
  const tsc = join(projectRoot, "node_modules/typescript/bin/tsc")
  const built = spawnSync(process.execPath, [tsc, "-p", folder, "--outDir", join(installed, "dist")], { encoding: "utf8" })
  assert.strictEqual(built.status, 0, built.stdout)
  return { target, dist: join(installed, "dist") }
})

class Installed extends Context.Service<Installed, Effect.Success<ReturnType<typeof install>>>()("vatproof/test/Installed") {}

/** Starts a server that answers each request by its number, from 0 on. */
const answering = Effect.fnUntraced(function* (answer: (count: number) => readonly [number, Record<string, string>, string]) {
  const asked: Array<Readonly<Record<string, unknown>>> = []
  const server = createServer((request, response) => {
    const [status, headers, body] = answer(asked.push(request.headers) - 1)
    // Status 0 is no response.
    if (status !== 0) response.writeHead(status, headers).end(body)
  })
  const port = yield* RunningService.freePort
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => [server.close(), server.closeAllConnections()])
  )
  return { asked, baseUrl: `http://127.0.0.1:${port}` }
})

const problem = (code: string) => JSON.stringify({ error: { code, message: "Later", request_id: "r" } })

layer(Layer.merge(layerSigned(), Layer.effect(Installed, install())), { excludeTestServices: true })(
  "the client for TypeScript",
  (it) => {
    const clientOf = Effect.fnUntraced(function* (more: Partial<Options> = {}) {
      const { baseUrl, newKey } = yield* RunningService.RunningService
      const apiKey = yield* newKey
      return { apiKey, baseUrl, vat: vatproof({ baseUrl, apiKey, ...more }) }
    })

    it.effect("gives verdicts, and an error for an outage or a refusal", function* () {
      const { vat } = yield* clientOf()
      assert.containSubset(yield* ask(() => vat.validate(valid, { reference: "INV-1", force_live: true })), {
        valid: true,
        cache: false
      })
      assert.containSubset(yield* ask(() => vat.validate(invalid)), { valid: false })
      const down = yield* refused(() => vat.validate(outage))
      assert.containSubset(down, { code: "SOURCE_UNAVAILABLE", status: 503, retryable: true })
      assert.isNumber(down.retryAfterSeconds)
      const wrong = yield* refused(() => vat.validate("GB123456789"))
      assert.containSubset(wrong, { code: "INVALID_VAT_ID", status: 400, retryable: false, retryAfterSeconds: undefined })
      assert.isString(wrong.requestId)
      const { baseUrl } = yield* RunningService.RunningService
      assert.containSubset(yield* ask(() => vatproof({ baseUrl }).validate(valid)), { valid: true })
    })

    it.effect("waits for the answer to a submission, and for the results of a batch", function* () {
      const { vat } = yield* clientOf()
      assert.containSubset(yield* ask(() => vat.validations.submit({ vat_id: valid, reference: "INV-2" }).final()), {
        valid: true,
        status: "final"
      })
      const pending = yield* ask(() => vat.validations.submit({ vat_id: "MT10999301" }))
      assert.strictEqual(pending.status, "pending")
      const { validation_id } = pending
      const early = yield* refused(() => vat.validations.final(validation_id, { timeoutMs: 500 }))
      assert.containSubset(early, { code: "TIMEOUT", retryable: true })
      yield* ask(() => vat.call("cancelValidation", { path: { validation_id } }))
      const ended = yield* refused(() => vat.validations.final(validation_id))
      assert.containSubset(ended, { code: "CANCELLED", retryable: false })

      const rows = Array.from({ length: 501 }, (_, index) => ({ custom_id: `${index}`, vat_id: index === 500 ? "GB1" : valid }))
      const results = yield* collect(vat.batches.submit(rows).results())
      assert.deepStrictEqual(
        results.map(({ custom_id }) => custom_id),
        rows.map(({ custom_id }) => custom_id)
      )
      assert.containSubset(results[0], { status: "final", valid: true })
      assert.strictEqual(results[500]?.status, "invalid_format")
      assert.isUndefined(results[500]?.valid)
    })

    it.effect("is charged once for each validation whose response is lost", function* () {
      const { port } = yield* RunningService.RunningService
      const { baseUrl, lost } = yield* LostResponses.make(port)
      const { vat } = yield* clientOf({ baseUrl })
      const numbers = Array.from({ length: lossyCalls }, (_, index) => index)
      const answers = yield* Effect.forEach(
        numbers,
        (index) =>
          ask(() => {
            const vatId = `ATU13${String(index % 20).padStart(6, "0")}`
            return index % 3 === 0 ? vat.validations.submit({ vat_id: vatId }).final() : vat.validate(vatId)
          }),
        { concurrency: 16 }
      )
      assert.strictEqual(answers.filter((answer) => answer.valid).length, lossyCalls)
      const rows = ["a", "b"].map((custom_id, index) => ({ custom_id, vat_id: `ATU1400000${index}` }))
      assert.strictEqual((yield* collect(vat.batches.submit(rows).results())).length, 2)
      assert.strictEqual((yield* ask(() => vat.call("listBatches"))).data.length, 1)
      assert.isAtLeast(lost.current, lossyCalls)
      assert.strictEqual((yield* ask(() => vat.call("getUsage"))).requests.used, lossyCalls + 2)
      // A registration is safe as well.
      const key = crypto.randomUUID()
      const registered = () => vat.call("registerAgent", { body: { agent_id: `lossy ${key}` } }, { idempotencyKey: key })
      assert.strictEqual((yield* ask(registered)).api_key, (yield* ask(registered)).api_key)
    })

    it.effect("does not repeat a lost request that would have a second effect", function* () {
      const { port } = yield* RunningService.RunningService
      const { baseUrl, lost } = yield* LostResponses.make(port)
      const { apiKey, vat } = yield* clientOf({ baseUrl })
      const without = yield* refused(() => vat.validate(valid, {}, { idempotencyKey: false }))
      assert.containSubset(without, { code: "UNREACHABLE", retryable: true, status: 0 })
      assert.strictEqual(lost.current, 1)
      assert.strictEqual((yield* refused(() => vat.call("rotateApiKey", {}))).code, "UNREACHABLE")
      assert.strictEqual(lost.current, 2)
      assert.notInclude(`${without.stack} ${JSON.stringify(without)}`, apiKey)
    })

    it.effect("calls every operation but the auditors'", function* () {
      const service = yield* RunningService.RunningService
      const called = new Set<string>()
      const connect = (options: Partial<Options>) => {
        const vat = vatproof({ baseUrl: service.baseUrl, ...options })
        const call = <Id extends JsonOperation>(id: Id, ...args: Args<Id>) => {
          called.add(id)
          return ask(() => vat.call(id, ...args))
        }
        return { call, open: vat.open }
      }
      const anyone = connect({})
      for (const id of ["getHealth", "getSourceStatus"] as const) yield* anyone.call(id)
      yield* anyone.call("getSourceHistory", { query: { member_state: "DE", days: 1 } })
      const { api_key } = yield* anyone.call("registerAgent", { body: { agent_id: "every operation" } })
      yield* RunningService.setPlan(api_key, "business")
      const { call, open } = connect({ apiKey: api_key })
      yield* call("getUsage")

      const confirmed = yield* call("validateVatId", { path: { vat_id: "DE100440000" }, query: company })
      const confirmation = confirmed.qualified_confirmation
      const receipt_id = confirmation !== null && "receipt_id" in confirmation ? confirmation.receipt_id : ""
      const path = { receipt_id }
      assert.strictEqual((yield* call("getQualifiedConfirmation", { path })).receipt_id, receipt_id)
      const pdf = yield* ask(() => open("getQualifiedConfirmation", "application/pdf", { path }))
      assert.strictEqual(new TextDecoder().decode(pdf.body.subarray(0, 5)), "%PDF-")
      assert.strictEqual((yield* call("listQualifiedConfirmations", { query: { limit: 1 } })).data.length, 1)
      assert.strictEqual((yield* call("getAuditProof", { path: { subject: receipt_id } })).event.type, "ReceiptIssued")
      const { link_id, url } = yield* call("createReceiptLink", { path, body: { expires_in_days: 1 } })
      assert.strictEqual((yield* call("listReceiptLinks", { path })).data.length, 1)
      const page = yield* ask(() => open("openReceiptLink", "text/html", { path: { token: url.split("/").at(-1) ?? "" } }))
      called.add("openReceiptLink")
      assert.include(page.response.headers.get("content-type"), "text/html")
      yield* call("revokeReceiptLink", { path: { receipt_id, link_id } })

      const { validation_id } = yield* call("submitValidation", { body: { vat_id: "MT10999301" } }, { prefer: "respond-async" })
      assert.strictEqual((yield* call("getValidation", { path: { validation_id } })).status, "pending")
      assert.strictEqual((yield* call("listValidations", { query: { status: "pending" } })).data.length, 1)
      assert.strictEqual((yield* call("cancelValidation", { path: { validation_id } })).status, "cancelled")
      const { batch_id } = yield* call("submitBatch", { body: { items: [{ custom_id: "1", vat_id: "MT10999301" }] } })
      assert.strictEqual((yield* call("getBatch", { path: { batch_id } })).counts.total, 1)
      yield* call("cancelBatch", { path: { batch_id } })
      assert.strictEqual((yield* call("listBatchResults", { path: { batch_id } })).data.length, 1)
      assert.strictEqual((yield* call("listBatches")).data.length, 1)
      assert.include(
        (yield* call("listUpdates")).data.map(({ type }) => type),
        "validation.cancelled"
      )

      const rotated = yield* call("rotateApiKey", { body: { revoke_old: true } })
      yield* connect({ apiKey: rotated.key }).call("revokeOwnApiKey")

      const email = "client@example.com"
      // A signup by a browser is confirmed by mail.
      const asBrowser: typeof fetch = (url, init) =>
        fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), "user-agent": People.browser } })
      yield* connect({ fetch: asBrowser }).call("signUp", { body: { email, password: People.password } })
      const wrong = { query: { token: "0".repeat(64) } }
      assert.containSubset(yield* Effect.flip(anyone.call("verifyEmailByLink", wrong)), { code: "INVALID_TOKEN" })
      const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
      yield* anyone.call("verifyEmail", { body: { token } })
      const login = yield* anyone.call("logIn", { body: { email, password: People.password } })
      const passwords = { current_password: People.password, new_password: "another password" }
      yield* connect({ token: login.token }).call("changePassword", { body: passwords })
      yield* anyone.call("requestPasswordReset", { body: { email } })
      const [reset = ""] = yield* MailedTokens.tokensFor(email, 1, "password-reset")
      yield* ask(() => anyone.open("showPasswordReset", "text/html", { query: { token: reset } }))
      called.add("showPasswordReset")
      yield* anyone.call("resetPassword", { body: { token: reset, password: "a third password" } })
      const again = yield* anyone.call("logIn", { body: { email, password: "a third password" } })
      const owner = connect({ token: again.token })
      const { id } = yield* owner.call("createApiKey", { body: { name: "Shop" } })
      assert.strictEqual((yield* owner.call("listApiKeys")).api_keys.length, 1)
      yield* owner.call("claimApiKey", { body: { api_key: yield* service.newKey } })
      yield* owner.call("revokeApiKey", { path: { id } })

      assert.sameMembers(Array.from(called), Object.keys(operations))
    })

    it.effect("bounds each wait, and follows Retry-After", function* () {
      const busy = yield* answering((count) =>
        count === 0 ? [503, { "retry-after": "1" }, problem("SERVICE_UNAVAILABLE")] : [200, {}, '{"valid":true}']
      )
      const apiKey = "svc_live_x"
      assert.isTrue((yield* ask(() => vatproof({ baseUrl: busy.baseUrl, apiKey }).validate(valid))).valid)
      assert.strictEqual(busy.asked.length, 2)
      assert.strictEqual(busy.asked[0]?.["idempotency-key"], busy.asked[1]?.["idempotency-key"])

      const monthly = yield* answering(() => [429, { "retry-after": "86400" }, problem("RATE_LIMIT_EXCEEDED")])
      const limited = yield* refused(() => vatproof({ baseUrl: monthly.baseUrl, apiKey }).validate(valid))
      assert.containSubset(limited, { code: "RATE_LIMIT_EXCEEDED", retryAfterSeconds: 86_400, retryable: true })
      assert.strictEqual(monthly.asked.length, 1)

      const silent = yield* answering(() => [0, {}, ""])
      const slow = vatproof({ baseUrl: silent.baseUrl, apiKey, tryTimeoutMs: 30, retries: 1 })
      assert.containSubset(yield* refused(() => slow.validate(valid)), { code: "TIMEOUT", retryable: true })
      assert.strictEqual(silent.asked.length, 2)
      const control = new AbortController()
      const waiting = ask(() => vatproof({ baseUrl: silent.baseUrl }).validate(valid, {}, { signal: control.signal }))
      const reason = new TypeError("The form was closed")
      const [ended] = yield* Effect.all([Effect.flip(waiting), Effect.sync(() => control.abort(reason))], { concurrency: 2 })
      assert.strictEqual(ended, reason)
    })

    it.effect("takes no answer of another program for one of the service, and sends its key to no other address", function* () {
      const apiKey = "svc_live_secret"
      const answers = [
        [200, {}, "<html>"],
        [200, {}, '{"vat_id":"ATU12345678"}'],
        [502, {}, "<html>"],
        [404, {}, '{"valid":false}']
      ] as const
      for (const answer of answers) {
        const { baseUrl } = yield* answering(() => answer)
        const error = yield* refused(() => vatproof({ baseUrl, apiKey, retries: 0 }).validate(valid))
        assert.containSubset(error, { code: "UNEXPECTED_RESPONSE", status: answer[0], retryable: answer[0] === 502 })
      }
      const other = yield* answering(() => [200, {}, '{"valid":true}'])
      const moved = yield* answering(() => [302, { location: other.baseUrl }, ""])
      assert.strictEqual((yield* refused(() => vatproof({ baseUrl: moved.baseUrl, apiKey }).validate(valid))).status, 302)
      assert.strictEqual(other.asked.length, 0)
      const secrets = [
        () => vatproof({ baseUrl: moved.baseUrl, apiKey: `${apiKey}\n` }),
        () => vatproof({ baseUrl: `https://user:${apiKey}@vat.example.com` })
      ]
      for (const make of secrets) assert.throws(make, /^(?!.*secret)/u)
      const closed = `http://127.0.0.1:${yield* RunningService.freePort}`
      const nowhere = yield* refused(() => vatproof({ baseUrl: closed, apiKey, retries: 0 }).validate(valid))
      assert.strictEqual(nowhere.message, "UNREACHABLE: The connection failed (ECONNREFUSED)")
    })

    it.effect("is at most 10 KiB", function* () {
      const { dist } = yield* Installed
      const code = readdirSync(dist)
        .filter((name) => name.endsWith(".js"))
        .map((name) => readFileSync(join(dist, name)))
      assert.isAtMost(gzipSync(Buffer.concat(code)).length, 10 * 1024)
    })

    /** Programs named node, and those of the versions that this machine may have beside them. */
    const nodes = spawnSync("which", ["-a", "node", "node20", "node22", "node24"], { encoding: "utf8" }).stdout.trim().split("\n")
    const majorOf = (node: string) => /^v(\d+)/u.exec(spawnSync(node, ["--version"], { encoding: "utf8" }).stdout)?.at(1)

    for (const major of ["20", "22", "24"]) {
      it.effect(`runs the examples of its README on Node ${major}`, function* (context) {
        const node = [process.execPath, ...nodes].find((path) => majorOf(path) === major)
        if (node === undefined) return context.skip(`skipped: Node ${major} is not installed`)
        const { target } = yield* Installed
        const { baseUrl, newKey } = yield* RunningService.RunningService
        const key = yield* newKey
        const examples = Array.from(
          readFileSync(join(folder, "README.md"), "utf8").matchAll(/```js\n(.*?)```/gsu),
          ([, text = ""]) => text
        )
        const outputs = MutableRef.make("")
        for (const [index, text] of examples.entries()) {
          const file = join(target, `example${index}.mjs`)
          writeFileSync(file, text)
          const env = { VATPROOF_URL: baseUrl, VATPROOF_KEY: key }
          const handle = yield* ChildProcess.make(node, [file], { env, extendEnv: true, stdin: "ignore" })
          const output = yield* handle.all.pipe(Stream.decodeText(), Stream.mkString)
          MutableRef.update(outputs, (before) => before + output)
        }
        assert.strictEqual(
          outputs.current,
          "true Musterhaus GmbH & Co KG\ntrue\ntrue\n1 final true\n2 invalid_format undefined\ntrue\n"
        )
      })
    }
  }
)
