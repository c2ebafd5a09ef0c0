import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"

/** Prints the path of each module of `src` that the process loads, to standard error. */
const listModules = `
import { registerHooks } from "node:module"
registerHooks({
  load: (url, context, next) => {
    const path = /\\/src\\/(.*)$/u.exec(url)
    if (path !== null && !url.includes("node_modules")) console.error(path[1])
    return next(url, context)
  }
})`

const start = (...args: ReadonlyArray<string>) => {
  const hooks = `data:text/javascript,${encodeURIComponent(listModules)}`
  const { stderr, stdout } = spawnSync(process.execPath, ["--import", hooks, "src/main.ts", ...args], {
    cwd: join(import.meta.dirname, ".."),
    encoding: "utf8"
  })
  return { stdout, modules: stderr.trim().split("\n") }
}

describe("The command line", () => {
  it("loads no module of the service for --version and --help", () => {
    for (const flag of ["--version", "--help"]) {
      const { modules, stdout } = start(flag)
      assert.include(stdout, "vatproof")
      assert.include(modules, "cli.ts")
      assert.deepStrictEqual(
        modules.filter((path) => /^(?:app\.ts|commands|events|http|layers)/u.test(path)),
        []
      )
    }
  })

  it("prints the error of a wrong command line first, on its own line, and then the help", () => {
    const main = join(import.meta.dirname, "../src/main.ts")
    const { output, status } = spawnSync("sh", ["-c", `"${process.execPath}" "${main}" batch 2>&1`], { encoding: "utf8" })
    const [first = "", ...rest] = (output[1] ?? "").split("\n")
    assert.match(first, /^vatproof: Missing required flag: --out$/u)
    assert.include(rest.join("\n"), "USAGE")
    assert.strictEqual(status, 1)
  })

  it("loads the module of the command that it names only", () => {
    const { modules, stdout } = start("batch", "--help")
    assert.include(stdout, "--resume")
    const commands = modules.filter((path) => /^commands\/\w+Commands?\.ts$/u.test(path))
    assert.deepStrictEqual(commands, ["commands/BatchCommand.ts"])
  })
})
