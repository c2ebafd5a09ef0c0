import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

/** Paths below the project's root, as `test/domain/vat/VatId.test.ts`. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\/(?:node_modules|fixtures)(?:\/|$)/u.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
    .toSorted()

const isTypeScript = (path: string) => path.endsWith(".ts")

const source = filesIn("src").filter(isTypeScript)
const tests = filesIn("test").filter(isTypeScript)

/** These folders of test mirror no folder of src. */
const unmirrored = /^test\/(?:support|faults|benchmarks|tooling)\//u

const seenBy = (bin: string, flag: string): ReadonlySet<string> => {
  const args = [join(projectRoot, "node_modules", bin), flag]
  const { stdout } = spawnSync(process.execPath, args, { cwd: projectRoot, encoding: "utf8" })
  return new Set(stdout.split("\n").map((path) => path.replace(`${projectRoot}/`, "")))
}

const seen: Readonly<Record<string, ReadonlySet<string>>> = {
  "the linter": seenBy("oxlint/bin/oxlint", "--debug=files"),
  "the compiler": seenBy("typescript/bin/tsc", "--listFilesOnly")
}

describe("the layout", () => {
  it("has only the folders that the architecture names", () => {
    const folders = readdirSync(projectRoot, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const unknown = folders
      .map((entry) => entry.name)
      .filter((name) => !/^(?:src|test|migrations|docs|node_modules|\..*)$/u.test(name))
    assert.deepStrictEqual(unknown, [])
  })

  it("has a source file for each test: Vies.test.ts and ViesNoVerdict.test.ts in test/infra test src/infra/sources/Vies.ts", () => {
    const orphans = tests
      .filter((path) => !unmirrored.test(path))
      .filter((path) => {
        const tested = source.filter((file) => dirname(path).replace(/^test/u, "src") === dirname(file))
        return !path.endsWith(".test.ts") || !tested.some((file) => basename(path).startsWith(basename(file, ".ts")))
      })
    assert.deepStrictEqual(orphans, [])
  })

  it("suppresses nowhere the rule that suppressions have a reason", () => {
    const silenced = [...source, ...tests]
      .filter((path) => !path.startsWith("test/tooling/"))
      .filter((path) => /oxlint-disable.*suppression-reason/u.test(readFileSync(join(projectRoot, path), "utf8")))
    assert.deepStrictEqual(silenced, [])
  })

  it.each(Object.keys(seen))("lets %s see every file", (tool) => {
    const missed = [...source, ...tests].filter((path) => !seen[tool]?.has(path))
    assert.deepStrictEqual(missed, [])
  })
})
