/** Calls a service by the client in clients/python. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { operations } from "#client/types.ts"
import { layerSigned } from "#test/support/Auditing.ts"
import * as LostResponses from "#test/support/LostResponses.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

/** Validations with a lost response. */
const lossyCalls = 32

const folder = join(projectRoot, "clients/python")
const scripts = join(projectRoot, "test/tooling/fixtures/clients")
const isHere = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"], { encoding: "utf8" }).status === 0

/** Runs a program with the client. Returns its output, and fails with it if the program fails. */
const run = Effect.fnUntraced(function* (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) {
  const python = { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" }
  const handle = yield* ChildProcess.make("python3", args, { env: { ...python, ...env }, extendEnv: true, stdin: "ignore" })
  const written = handle.all.pipe(Stream.decodeText(), Stream.mkString)
  const [output, code] = yield* Effect.all([written, handle.exitCode], { concurrency: "unbounded" })
  assert.strictEqual(Number(code), 0, output)
  return output
})

layer(layerSigned(), { excludeTestServices: true })("the client for Python", (it) => {
  const envOf = Effect.gen(function* () {
    const { baseUrl, newKey } = yield* RunningService.RunningService
    return { VATPROOF_URL: baseUrl, VATPROOF_KEY: yield* newKey }
  })

  it.effect("runs the examples of its README", function* (context) {
    context.skip(!isHere, "skipped: Python 3.11 is not installed")
    const env = yield* envOf
    const readme = readFileSync(join(folder, "README.md"), "utf8")
    const examples = Array.from(readme.matchAll(/```python\n(.*?)```/gsu), ([, text = ""]) => text)
    const outputs = yield* Effect.forEach(examples, (text) => run(env, "-c", text))
    assert.deepStrictEqual(outputs, [
      "True Musterhaus GmbH & Co KG\n",
      "True\nTrue\n",
      "1 final True\n2 invalid_format None\n",
      "True\n"
    ])
  })

  it.effect("gives an error for an outage, bounds each wait, and names no secret", function* (context) {
    context.skip(!isHere, "skipped: Python 3.11 is not installed")
    assert.strictEqual(yield* run(yield* envOf, join(scripts, "errors.py")), "passed\n")
  })

  it.effect("is charged once for each validation whose response is lost, and repeats no other lost request", function* (context) {
    context.skip(!isHere, "skipped: Python 3.11 is not installed")
    const { port } = yield* RunningService.RunningService
    const { baseUrl, lost } = yield* LostResponses.make(port)
    const output = yield* run({ ...(yield* envOf), VATPROOF_URL: baseUrl }, join(scripts, "lost_responses.py"), `${lossyCalls}`)
    assert.strictEqual(output, `${lossyCalls} valid, ${lossyCalls} charged\n`)
    assert.isAtLeast(lost.current, lossyCalls)
  })

  it.effect("calls every operation but the auditors'", function* (context) {
    context.skip(!isHere, "skipped: Python 3.11 is not installed")
    const service = yield* RunningService.RunningService
    const email = "python@example.com"
    yield* People.signUpByBrowser(service, email)
    const [verification = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* service.post("/v1/auth/password-reset", { email })
    const [reset = ""] = yield* MailedTokens.tokensFor(email, 1, "password-reset")
    const env = { ...(yield* envOf), VERIFICATION: verification, RESET: reset, EMAIL: email, CLAIMED: yield* service.newKey }
    yield* RunningService.setPlan(env.VATPROOF_KEY, "business")
    const called = (yield* run(env, join(scripts, "every_operation.py"))).trim().split("\n")
    const snake = (id: string) => id.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)
    assert.sameMembers(called, Object.keys(operations).map(snake))
  })
})
