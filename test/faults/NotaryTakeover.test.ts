/** The log stays signed when the signing replica dies, and a service does not start on a log that differs from the signed one. */
import { Effect, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { checkpointOf, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Starts a service that must not become ready. Returns the body of its /readyz response. */
const startErrorOf = Effect.fnUntraced(function* (settings: RunningService.Settings) {
  const port = yield* RunningService.freePort
  const http = yield* HttpClient.HttpClient
  const ready = Effect.gen(function* () {
    const { status, json } = yield* http.get(`http://127.0.0.1:${port}/readyz`)
    return { status, body: yield* json }
  })
  yield* Effect.forkScoped(RunningService.start({ ...settings, ADMIN_PORT: String(port) }))
  const { body, status } = yield* ready.pipe(
    Effect.retry(Schedule.spaced("100 millis")),
    Effect.repeat({ until: ({ body }) => JSON.stringify(body).includes("notary"), schedule: Schedule.spaced("100 millis") }),
    Effect.timeout("20 seconds")
  )
  assert.strictEqual(status, 503)
  return JSON.stringify(body)
}, Effect.scoped)

layer(RunningService.layerGround, { excludeTestServices: true })("A notary that is killed", (it) => {
  it.effect(
    "is replaced by the notary of another replica; no replica starts if the log has fewer events than a signed checkpoint states",
    function* () {
      const settings = signing(yield* temporaryFolder)
      const one = yield* RunningService.spawn(settings)
      yield* one.validate("ATU12345678")
      const signed = yield* checkpointOf(one, 1)
      const other = yield* RunningService.start(settings)
      assert.match(yield* one.output, /public key: vatproof\.example\/log\/0\+/u)
      yield* one.signal("SIGKILL")
      yield* other.validate("ATU12345678")
      yield* other.validate("ATU12345678")
      const { size } = yield* checkpointOf(other, signed.size + 2)
      yield* other.stop

      yield* tamper(`DELETE FROM vatproof.events WHERE position = ${size - 1}`)
      assert.match(yield* startErrorOf(settings), new RegExp(`The log has ${size - 1} events, but ${size} were signed`, "u"))

      yield* tamper(
        `DELETE FROM vatproof.checkpoints WHERE size > ${signed.size}`,
        `UPDATE vatproof.logs SET next_position = ${signed.size}`,
        `DELETE FROM vatproof.events WHERE position >= ${signed.size}`
      )
      const error = yield* startErrorOf(settings)
      assert.match(error, new RegExp(`${size} events were signed before, but the database has only ${signed.size}`, "u"))
      assert.match(error, /notary-[\da-f]{8}\.checkpoint/u)
      assert.match(error, /vatproof notary adopt/u)
    }
  )
})

layer(RunningService.layer(), { excludeTestServices: true })(
  "A service with an external database and without a NOTARY_KEY",
  (it) => {
    it.effect("rejects requests for proofs with 503", function* () {
      const service = yield* RunningService.RunningService
      const { headers } = yield* newAuditor()
      yield* service.validate("ATU12345678")
      const reply = yield* service.get("/v1/audit/proofs/0", { headers })
      assert.match(assertProblem(reply, "SERVICE_UNAVAILABLE").message, /No signed checkpoint covers/u)
      assert.strictEqual(reply.headers["retry-after"], "2")
    })
  }
)
