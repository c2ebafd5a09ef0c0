/** A simulation is never evidence (rule 89): the sandbox as a user runs it, followed by the live service, and the other way round. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { spawned } from "#test/support/CommandLine.ts"
import * as EmbeddedService from "#test/support/EmbeddedService.ts"
import { freePort } from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const ground = Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici, SecureRandom.layerWebCrypto)

const company = { company_name: "Muster GmbH", company_city: "Berlin", requester_vat_id: "DE123456789" }

const decodeConfirmed = Schema.decodeUnknownEffect(
  Schema.Struct({ qualified_confirmation: Schema.Struct({ receipt_id: Schema.String, source: Schema.String }) })
)

/** Starts a command that must refuse its data, and returns its exit code and its lines of output. */
const refused = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>, command: "serve" | "sandbox") {
  const { code, stderr, stdout } = yield* spawned({ ...env, PORT: String(yield* freePort), LOG_LEVEL: "error" }, command)
  return { code, lines: `${stdout}${stderr}`.trim().split("\n") }
})

layer(ground, { excludeTestServices: true })("a sandbox", (it) => {
  it.effect(
    "marks its receipts, proofs, exports and verifications, and the service refuses its data with one line",
    function* () {
      const { client, env, stop } = yield* EmbeddedService.start("sandbox")
      assert.include((yield* client.get("/", { headers: { accept: "text/html" } })).text, "all answers are simulated")
      const { body } = yield* client.post("/v1/register", { agent_id: "me" })
      const { api_key: key } = yield* Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))(body)
      const planned = yield* spawned(env, "account", "plan", "me", "business", "--reason", "a try")
      assert.deepStrictEqual([planned.code, planned.stderr], [0, ""])
      const confirmed = yield* client.validate("DE811115368", { key, query: company })
      const { receipt_id, source } = (yield* decodeConfirmed(confirmed.body)).qualified_confirmation
      assert.strictEqual(source, "vatproof-sandbox-issued")

      const path = `/v1/qualified-confirmations/${receipt_id}`
      assert.containSubset((yield* client.get(path, { key })).body, { sandbox: true, source })
      assert.containSubset((yield* client.get("/v1/qualified-confirmations", { key })).body, { data: [{ sandbox: true }] })
      for (const [language, mark] of [
        ["en", "SANDBOX: NO EVIDENCE"],
        ["de", "SANDBOX: KEIN NACHWEIS"]
      ] as const) {
        const headers = { accept: "text/html", "accept-language": language }
        assert.include((yield* client.get(path, { key, headers })).text, `<p class="mark">${mark}`)
      }
      const proof = yield* client
        .get(`/v1/audit/proofs/${receipt_id}`, { key })
        .pipe(Effect.repeat({ until: ({ status }) => status === 200 }))
      assert.match(proof.text, /\n\nvatproof-sandbox\/sandbox\/0\n/u)

      const directory = join(env.DATA_DIR, "export")
      assert.strictEqual((yield* spawned(env, "audit", "export", "--out", directory)).code, 0)
      const file = (name: string) => readFileSync(join(directory, name), "utf8")
      assert.match(file("README.txt"), /^SANDBOX: KEIN NACHWEIS.*\nSANDBOX: NO EVIDENCE/u)
      assert.match(file("manifest.json"), /"sandbox": true/u)
      assert.match(file("index.xml"), /<Comment>SIMULIERT, KEIN NACHWEIS: /u)
      for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((one) => one.endsWith(".csv"))) {
        const [header = "", ...rows] = file(name).trimEnd().split("\r\n")
        assert.match(header, /;"sandbox"$/u, name)
        for (const row of rows) assert.match(row, /;"SIMULIERT \/ SIMULATED"$/u, name)
      }
      for (const which of [[], ["--export", directory]]) {
        const verified = yield* spawned(env, "audit", "verify", ...which)
        assert.deepStrictEqual(
          [verified.code, verified.stdout.startsWith("SANDBOX: the answers in the log vatproof-sandbox")],
          [0, true]
        )
        assert.include((yield* spawned(env, "audit", "verify", ...which, "--json")).stdout, '"purpose": "sandbox"')
      }

      assert.strictEqual(yield* stop, 0)
      const { code, lines } = yield* refused(env, "serve")
      assert.strictEqual(code, 1)
      assert.lengthOf(lines, 1)
      assert.match(
        lines[0] ?? "",
        /The log is that of a sandbox, whose answers are simulated: run .+vatproof sandbox.+ on it, or set DATABASE_URL or DATA_DIR to other data for the service/u
      )
    },
    120_000
  )

  it.effect(
    "refuses the data of a live service, and its key, each with one line",
    function* () {
      const { env, stop } = yield* EmbeddedService.start("serve")
      const live = yield* spawned(env, "audit", "verify", "--json")
      assert.deepStrictEqual([live.code, /"purpose": "(\w+)"/u.exec(live.stdout)?.[1]], [0, "live"])
      assert.strictEqual(yield* stop, 0)
      const onData = yield* refused(env, "sandbox")
      assert.deepStrictEqual([onData.code, onData.lines.length], [1, 1])
      assert.match(onData.lines[0] ?? "", /The log is a live one: run .+vatproof serve.+ on it, or set DATABASE_URL or DATA_DIR/u)
      const made = yield* spawned(env, "notary", "key", "--name", "vatproof/log/0", "--json")
      const [, secret = ""] = /"notary_key": "(.+)"/u.exec(made.stdout) ?? []
      const onKey = yield* refused({ ...env, DATA_DIR: `${env.DATA_DIR}-sandbox`, NOTARY_KEY: secret }, "sandbox")
      assert.deepStrictEqual([onKey.code, onKey.lines.length], [1, 1])
      assert.match(
        onKey.lines[0] ?? "",
        /NOTARY_KEY: The key belongs to the live log vatproof\/log\/0, and this log is a sandbox log/u
      )
    },
    120_000
  )
})
