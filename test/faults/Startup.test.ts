/** What cannot start says why in one line, names no secret, and does not hang. */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as RunningService from "#test/support/RunningService.ts"

/** Everything that a service wrote which did not come up. */
const lastWords = Effect.fnUntraced(function* (settings: RunningService.Settings) {
  const exit = yield* Effect.exit(RunningService.spawn(settings))
  if (Exit.isSuccess(exit)) return assert.fail("It came up")
  const [, written = ""] = String(Cause.squash(exit.cause)).split("The service ended: ")
  return written.trim().split("\n")
})

layer(RunningService.layerGround, { excludeTestServices: true })("a service that cannot start", (it) => {
  it.effect.each([
    ["a setting of the wrong kind", { PORT: "eighty" }, /^vatproof: PORT: /u],
    ["a setting out of range", { TRUST_PROXY: "-1" }, /^vatproof: TRUST_PROXY: /u],
    ["a time that is none", { STALE_MAX_AGE: "soon" }, /^vatproof: STALE_MAX_AGE: /u],
    ["a requester that is not German", { BZST_REQUESTER_VAT_ID: "ATU12345678" }, /^vatproof: BZST_REQUESTER_VAT_ID: /u],
    [
      "a database that is not there",
      { DATABASE_URL: "postgresql://vatproof:tell-nobody@127.0.0.1:9/vatproof" },
      /^vatproof: The database cannot be used: connect ECONNREFUSED 127.0.0.1:9$/u
    ],
    [
      "a database of another kind",
      { DATABASE_URL: "mysql://vatproof:tell-nobody@127.0.0.1/vatproof" },
      /^vatproof: DATABASE_URL: /u
    ]
  ] as const)("because of %s says so in one line", ([, settings, line]) =>
    Effect.gen(function* () {
      const lines = yield* lastWords(settings)
      assert.lengthOf(lines, 1, lines.join("\n"))
      assert.match(lines[0] ?? "", line)
      assert.notInclude(lines.join("\n"), "tell-nobody")
    })
  )

  it.effect("because its port is taken says so in one line", () =>
    Effect.gen(function* () {
      const { port } = yield* RunningService.make()
      const lines = yield* lastWords({ PORT: String(port) })
      const complaints = lines.filter((line) => line.startsWith("vatproof: "))
      assert.lengthOf(complaints, 1, lines.join("\n"))
      assert.include(complaints[0], String(port))
    })
  )
})
