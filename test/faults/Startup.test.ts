/** What cannot start says why in one line, names no secret, and does not hang. */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { createServer, type Server } from "node:net"
import * as RunningService from "#test/support/RunningService.ts"

/** Everything that a service wrote which did not come up. */
const lastWords = Effect.fnUntraced(function* (settings: RunningService.Settings) {
  const exit = yield* Effect.exit(RunningService.spawn(settings))
  if (Exit.isSuccess(exit)) return assert.fail("It came up")
  const [, written = ""] = String(Cause.squash(exit.cause)).split("The service ended: ")
  return written.trim().split("\n")
})

/** A port where somebody listens who answers nothing. */
const occupiedPort = Effect.gen(function* () {
  const port = yield* RunningService.freePort
  const listen = Effect.callback<Server>((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
  })
  yield* Effect.acquireRelease(listen, (server) => Effect.sync(() => server.close()))
  return port
})

layer(RunningService.layerGround, { excludeTestServices: true })("a service that cannot start", (it) => {
  it.effect.each([
    ["a setting of the wrong kind", { PORT: "eighty" }, /^vatproof: PORT: /u],
    [
      "a database that is not there",
      { DATABASE_URL: "postgresql://vatproof:tell-nobody@127.0.0.1:9/vatproof" },
      /^vatproof: The database cannot be used: connect ECONNREFUSED 127.0.0.1:9$/u
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
      const port = yield* occupiedPort
      const lines = yield* lastWords({ PORT: String(port) })
      const complaints = lines.filter((line) => line.startsWith("vatproof: "))
      assert.lengthOf(complaints, 1, lines.join("\n"))
      assert.include(complaints[0], String(port))
    })
  )
})
