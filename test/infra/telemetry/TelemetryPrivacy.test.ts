/** Traces, metrics, logs and standard output contain no secrets and no personal data. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { HttpClient } from "effect/http"
import { Collector, settingsFor } from "#test/support/Collector.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const address = "203.0.113.77"
const email = "harriet.private@example.com"
const company = "Geheime Firma GmbH"
const reference = "Geheimrechnung-4711"
const collectorSecret = "collector-password-1234"
const jwtSecret = "a-secret-of-more-than-thirty-two-characters"
const name = "discreet"

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ key: Schema.String }))

/** Sends requests with secrets and personal data, including rejected, failing and malformed ones. Returns the secrets. */
const traffic = Effect.fnUntraced(function* (service: RunningService.ServiceProcess) {
  const from = address
  const key = yield* service.newKey
  const signedUp = yield* People.signUp(service, email, { from })
  const token = yield* People.tokenIn(signedUp)
  yield* People.signUpByBrowser(service, "another.private@example.com", { from })
  const [verification = "none"] = yield* MailedTokens.tokensFor("another.private@example.com", 1)
  yield* service.get("/v1/auth/verify-email", { query: { token: verification }, from })
  yield* service.get("/v1/auth/verify-email", { query: { token: verification }, from })
  yield* People.logIn(service, email, { from })
  yield* People.logIn(service, email, { from, password: "wrong password of a person" })
  const created = yield* decodeKey(
    (yield* service.post("/v1/auth/api-keys", { name: "Private laptop" }, People.bearing(token))).body
  )
  for (const used of [undefined, key, created.key]) {
    yield* service.validate("DE274918365", { key: used, from, query: { reference } })
    yield* service.validate("de 987 654 321", { key: used, from })
    yield* service.validate("DE100982001", { key: used, from })
    yield* service.validate("ATU10999700", { key: used, from })
    yield* service.validate("FRXX482713965", { key: used, from, query: { force_live: "true", requester_vat_id: "DE136695976" } })
    yield* service.validate("DE136695976", {
      key: used,
      from,
      query: { company_name: company, company_city: "Geheimstadt", reference }
    })
  }
  yield* service.validate("DE274918365", { key: `${key.slice(0, -1)}x`, from })
  yield* service.post("/v1/register", { email: "third.private@example.com", agent_id: "Private agent" }, { from })
  yield* service.ask("/v1/register", {
    method: "POST",
    from,
    headers: { "content-type": "application/json" },
    body: { email: 5 }
  })
  yield* service.get("/v1/receipts", { key, from, query: { target_vat_id: "DE274918365" } })
  yield* service.get("/v1/usage", { key, from })
  yield* service.get(`/somewhere/${email}`, { from, query: { secret: token } })
  const secrets = [key, created.key, token, verification, jwtSecret, collectorSecret]
  return [...secrets, People.password, "wrong password of a person"]
})

const personal = [
  "DE274918365",
  "274918365",
  "987654321",
  "100982001",
  "10999700",
  "482713965",
  "136695976",
  email,
  "another.private",
  "third.private",
  company,
  reference,
  "Geheime",
  "Geheimstadt",
  address,
  "Private laptop",
  "Private agent"
]

layer(Layer.merge(RunningService.layerGround, Collector.layer), { excludeTestServices: true })(
  "telemetry at the log level Trace",
  (it) => {
    it.effect("has the trace id on every log line of a request, and contains no secrets, personal data or VAT IDs", function* () {
      const collector = yield* Collector
      const mail = yield* MailServer.MailServer
      const port = yield* RunningService.freePort
      const service = yield* RunningService.spawn({
        ...settingsFor(collector.url, name),
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${collectorSecret}`,
        OTEL_TRACES_SAMPLER: "always_on",
        LOG_LEVEL: "Trace",
        LOG_FORMAT: "json",
        ACCESS_LOG: "true",
        ADMIN_PORT: String(port),
        JWT_SECRET: jwtSecret,
        SMTP_URL: Redacted.value(mail.url),
        MAIL_FROM: "no-reply@vat.example"
      })
      const { headers } = yield* service.validate("ATU12345678", { headers: { "x-request-id": "my-own-id" } })
      const secrets = yield* traffic(service)
      yield* MailedTokens.allDelivered
      yield* collector.until(() => collector.spansOf(name).find((span) => span.name === "GET /v1/usage"))
      yield* collector.until(() => collector.metricsOf(name)[0])
      const http = yield* HttpClient.HttpClient
      const metrics = yield* Effect.flatMap(http.get(`http://127.0.0.1:${port}/metrics`), (response) => response.text)
      yield* service.signal("SIGTERM")
      assert.strictEqual(yield* service.ended, 0)
      const output = yield* service.output
      const exported = (yield* collector.everything).replaceAll(`Bearer ${collectorSecret}`, "")
      const lines = output.split("\n").filter((line) => line.includes("my-own-id"))
      assert.isNotEmpty(lines)
      for (const line of lines)
        assert.match(line, new RegExp(`"trace_id":"${headers["x-trace-id"]}","span_id":"[0-9a-f]{16}"`, "u"))
      assert.lengthOf(
        lines.filter((line) => /"route":"\/v1\/validate\/\{vat_id\}","status":200/u.test(line)),
        1
      )
      assert.include(output, '"level":"info"')
      assert.include(output, '"route":"/v1/validate/{vat_id}"')
      assert.isAbove(collector.spansOf(name).length, 100)
      assert.isAbove(collector.logsOf(name).length, 20)
      for (const [where, text] of Object.entries({ output, exported, metrics })) {
        for (const secret of [...secrets, ...personal])
          assert.isFalse(text.toLowerCase().includes(secret.toLowerCase()), `${where}: ${secret}`)
      }
    })
  }
)
