import { Effect, Option, Redacted } from "effect"
import { read } from "#infra/config/AppConfig.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"

const long = (text: string) => text.padEnd(32, "-")

describe("JWT_SECRET", () => {
  it.effect.each([{ secrets: [long("one")] }, { secrets: [long("one"), long("two"), long("three")] }])(
    "is split into the secrets %o",
    function* ({ secrets }) {
      const { jwtSecrets } = yield* read({ JWT_SECRET: ` ${secrets.join(" , ")} ` })
      assert.deepStrictEqual(
        Option.map(jwtSecrets, (list) => list.map(Redacted.value)),
        Option.some(secrets)
      )
      assert.notInclude(`${JSON.stringify(jwtSecrets)} ${String(jwtSecrets)}`, "one")
    }
  )

  it.effect.each(["short secret", `${long("one")},short secret`, `${long("one")},`, ",", "fifteen letters"])(
    'is rejected if it is "%s", with an error that does not contain the value',
    function* (text) {
      const { message } = yield* Effect.flip(read({ JWT_SECRET: text }))
      assert.strictEqual(message, "JWT_SECRET: Expected secrets of at least 16 characters each, separated by commas")
    }
  )
})

describe("LOGIN_FAILURES_PER_15_MIN", () => {
  it.effect("is 10 by default, and at least 1", function* () {
    assert.strictEqual((yield* read({})).loginFailuresPer15Min, 10)
    assert.strictEqual((yield* read({ LOGIN_FAILURES_PER_15_MIN: "3" })).loginFailuresPer15Min, 3)
    assert.include((yield* Effect.flip(read({ LOGIN_FAILURES_PER_15_MIN: "0" }))).message, "LOGIN_FAILURES_PER_15_MIN")
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service with an external database", (it) => {
  it.effect("does not start without JWT_SECRET, and reports the reason", function* () {
    const error = yield* Effect.flip(RunningService.start({ JWT_SECRET: "" }))
    const sentence =
      "DATABASE_URL is set, so JWT_SECRET is required: set the same secret of at least 32 characters on every replica"
    assert.strictEqual(error.message, sentence)
  })
})
