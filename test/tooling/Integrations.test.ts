/** Runs the code of the pages in docs/integrations against the sandbox. Stand-ins replace the platforms (fixtures/integrations). */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Schedule, Stream } from "effect"
import { ChildProcess } from "effect/process"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

const pages = join(projectRoot, "docs/integrations")
const fixtures = join(projectRoot, "test/tooling/fixtures/integrations")
const isHere = (program: string, ...args: ReadonlyArray<string>) => spawnSync(program, args).status === 0
/** python-stdnum of the operating system is not visible to another Python. */
const python = ["/usr/bin/python3", "python3"].find((program) => isHere(program, "-c", "import stdnum")) ?? "python3"

/** Returns a folder with the clients, the first block of code of the page as `file`, and the stand-ins as `main.*`. */
const unpack = Effect.fnUntraced(function* (page: string, file: string) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-integration-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )
  const target = join(folder, file)
  mkdirSync(dirname(target), { recursive: true })
  const code = /```(?:js|php|python)\n(.*?)```/su.exec(readFileSync(join(pages, page), "utf8"))?.at(1)
  writeFileSync(target, code ?? "")
  for (const client of readdirSync(pages).filter((name) => name.startsWith("vatproof."))) {
    copyFileSync(join(pages, client), join(dirname(target), client))
  }
  const standIn = `${page.replace(".md", "")}${/\.\w+$/u.exec(file)?.[0]}`
  if (existsSync(join(fixtures, standIn))) copyFileSync(join(fixtures, standIn), join(folder, standIn))
  return { folder, target, standIn: join(folder, standIn) }
})

const run = Effect.fnUntraced(function* (
  command: string,
  args: ReadonlyArray<string>,
  env: { readonly VATPROOF_URL: string; readonly VATPROOF_KEY: string }
) {
  const handle = yield* ChildProcess.make(command, args, { env, extendEnv: true, stdin: "ignore" })
  return yield* handle.all.pipe(Stream.decodeText(), Stream.mkString)
})

const service = Effect.gen(function* () {
  const { baseUrl, newKey } = yield* RunningService.RunningService
  return { VATPROOF_URL: baseUrl, VATPROOF_KEY: yield* newKey }
})
const unreachable = { VATPROOF_URL: "http://127.0.0.1:1", VATPROOF_KEY: "svc_live_x" }

/** VAT IDs of the sandbox: the source says valid, says invalid, and does not answer. The last one is that of no member state. */
const [valid, invalid, outage, formless] = ["ATU12345678", "DE100999200", "DE100999900", "GB123456789"]

/** What a page does with the three answers. `outage` is also its answer if the service cannot be reached. */
const platforms = [
  {
    page: "woocommerce.md",
    command: "php",
    file: "page.php",
    answers: { valid: "valid exempt accepted", invalid: "invalid taxed refused", outage: "unknown taxed accepted" }
  },
  {
    page: "shopware.md",
    command: "php",
    file: "page.php",
    answers: { valid: "accepted", invalid: "refused", outage: "accepted" }
  },
  {
    page: "odoo.md",
    command: "python3",
    file: "addon/page.py",
    answers: { valid: "valid now then valid", invalid: "invalid now then invalid", outage: "unknown False then unknown" }
  },
  {
    page: "erpnext.md",
    command: "python3",
    file: "addon/page.py",
    answers: { valid: "saved silently", invalid: "refused", outage: "saved with a message" }
  },
  {
    page: "stripe.md",
    command: process.execPath,
    file: "page.mjs",
    answers: { valid: "cus_1 reverse valid", invalid: "cus_1 none invalid", outage: "The VAT ID could not be checked now" }
  }
] as const

layer(RunningService.layerShared(), { excludeTestServices: true })("the pages of docs/integrations", (it) => {
  // The first one, because it asks the source: after the outages of the other pages the service asks no source for some seconds.
  it.effect("python-stdnum.md: a wrong check digit costs no validation, and an outage is unknown", function* (context) {
    context.skip(!isHere(python, "-c", "import stdnum"), "skipped: python-stdnum is not installed")
    const { target } = yield* unpack("python-stdnum.md", "page.py")
    const env = yield* service
    assert.strictEqual(yield* run(python, [target, "ATU 12345675"], env), "valid\n")
    assert.strictEqual(yield* run(python, [target, "ATU12345676"], unreachable), "invalid\n")
    assert.strictEqual(yield* run(python, [target, "ATU12345675"], unreachable), "unknown\n")
  })

  for (const { answers, command, file, page } of platforms) {
    it.effect(`${page}: tells valid, invalid and an outage apart`, function* (context) {
      context.skip(!isHere(command, "--version"), `skipped: ${command} is not installed`)
      const { standIn } = yield* unpack(page, file)
      const env = yield* service
      assert.strictEqual(yield* run(command, [standIn, valid], env), answers.valid)
      assert.strictEqual(yield* run(command, [standIn, invalid], env), answers.invalid)
      assert.strictEqual(yield* run(command, [standIn, formless], env), answers.invalid)
      assert.strictEqual(yield* run(command, [standIn, outage], env), answers.outage)
      assert.strictEqual(yield* run(command, [standIn, valid], unreachable), answers.outage)
      assert.strictEqual(yield* run(command, [standIn, valid], { ...env, VATPROOF_KEY: "svc_live_wrong" }), answers.outage)
    })
  }

  it.effect("checkout-form.md: its server answers the browser", function* () {
    const { target } = yield* unpack("checkout-form.md", "page.mjs")
    const port = yield* RunningService.freePort
    const env = { ...(yield* service), PORT: String(port) }
    yield* ChildProcess.make(process.execPath, [target], { env, extendEnv: true, stdin: "ignore", killSignal: "SIGKILL" })
    const ask = (path: string) =>
      Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}${path}`).then((response) => response.text()))
    const shown = ask("/").pipe(Effect.retry({ times: 200, schedule: Schedule.spaced("50 millis") }))
    assert.include(yield* shown, "<form>")
    assert.strictEqual(yield* ask(`/vat-id?vat_id=${valid}`), "valid")
    assert.strictEqual(yield* ask(`/vat-id?vat_id=${invalid}`), "invalid")
    assert.strictEqual(yield* ask(`/vat-id?vat_id=${outage}`), "unknown")
  })

  it.effect("accounting-csv.md: the import has an empty state where no source answered", function* (context) {
    context.skip(!isHere("python3", "--version") || !isHere("curl", "--version"), "skipped: python3 or curl is not installed")
    const { folder, target } = yield* unpack("accounting-csv.md", "page.py")
    const env = yield* service
    const [customers, results] = [join(folder, "customers.csv"), join(folder, "results.csv")]
    writeFileSync(customers, `custom_id,vat_id,name\n1,${valid},A\n2,${invalid},B\n3,${formless},C\n`)
    writeFileSync(results, yield* run("sh", [join(projectRoot, "docs/examples/batch.sh"), customers], env))
    const imported = yield* run("python3", [target, results], env)
    const states = imported
      .trim()
      .split(/\r?\n/u)
      .map((line) => line.split(",").slice(0, 3).join(" "))
    assert.deepStrictEqual(states, ["customer vat_id state", `1 ${valid} valid`, `2 ${invalid} invalid`, `3 ${formless} invalid`])
    const pending = readFileSync(results, "utf8").replace(",true,", ",,")
    writeFileSync(results, pending)
    assert.include(yield* run("python3", [target, results], env), `\n1,${valid},,`)
  })
})
