import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

/** Returns the paths of the files in a folder, below the project's root: `test/domain/vat/VatId.test.ts`. */
const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\/(?:node_modules|fixtures)(?:\/|$)/u.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name).slice(projectRoot.length + 1))
    .toSorted()

const isTypeScript = (path: string) => path.endsWith(".ts")

const source = filesIn("src").filter(isTypeScript)
const tests = filesIn("test").filter(isTypeScript)
const clients = filesIn("clients").filter(isTypeScript)

/** Matches files of test/ that have no counterpart in src/, and the table of attacks, which concerns several parts of the audit. */
const unmirrored = /^test\/(?:(?:support|faults|benchmarks|tooling)\/|events\/log\/verify\/AuditAttacks\.test\.ts$)/u

/** Returns the folders, such as `domain/vat`, in an import cycle within their layer. Ignores files directly in the layer's folder. */
const foldersInCycles = (textOf: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  const imports = new Map<string, Set<string>>()
  for (const [path, text] of Object.entries(textOf)) {
    const folder = dirname(path).replace(/^src\//u, "")
    const [layer = ""] = folder.split("/", 1)
    const targets = Array.from(text.matchAll(/(?:from |import\()"#([^"]+)\/[^/"]+"/gu), ([, target = ""]) => target)
    const others = targets.filter((target) => target !== folder && target.startsWith(`${layer}/`))
    if (folder !== layer) imports.set(folder, (imports.get(folder) ?? new Set()).union(new Set(others)))
  }
  const reached = (from: string, seen: ReadonlySet<string> = new Set()): ReadonlySet<string> =>
    Array.from(imports.get(from) ?? []).reduce(
      (known, next) => (known.has(next) ? known : reached(next, new Set([...known, next]))),
      seen
    )
  return Array.from(imports.keys()).filter((folder) => reached(folder).has(folder))
}

const seenBy = (bin: string, flag: string): ReadonlySet<string> => {
  const args = [join(projectRoot, "node_modules", bin), flag]
  const { stdout } = spawnSync(process.execPath, args, { cwd: projectRoot, encoding: "utf8" })
  return new Set(stdout.split("\n").map((path) => path.replace(`${projectRoot}/`, "")))
}

const seen: Readonly<Record<string, ReadonlySet<string>>> = {
  "the linter": seenBy("oxlint/bin/oxlint", "--debug=files"),
  "the compiler": seenBy("typescript/bin/tsc", "--listFilesOnly")
}

describe("the layout of the repository", () => {
  it("has for each test file a source file with the same beginning of its name, such as Vies.ts for ViesNoVerdict.test.ts", () => {
    const orphans = tests
      .filter((path) => !unmirrored.test(path))
      .filter((path) => {
        const tested = source.filter((file) => dirname(path).replace(/^test/u, "src") === dirname(file))
        return !path.endsWith(".test.ts") || !tested.some((file) => basename(path).startsWith(basename(file, ".ts")))
      })
    assert.deepStrictEqual(orphans, [])
  })

  it("has no import cycles between the folders of a layer", () => {
    const textOf = Object.fromEntries(source.map((path) => [path, readFileSync(join(projectRoot, path), "utf8")]))
    assert.deepStrictEqual(foldersInCycles(textOf), [])
    // Checks that a cycle through three folders is detected.
    const planted = {
      "src/domain/vat/Planted.ts": 'import type { Caller } from "#domain/callers/Caller.ts"',
      "src/domain/callers/Planted.ts": 'export const load = () => import("#domain/kernel/Version.ts")',
      "src/domain/kernel/Planted.ts": 'import { VatId } from "#domain/vat/VatId.ts"'
    }
    assert.sameMembers(foldersInCycles(planted).slice(), ["domain/vat", "domain/callers", "domain/kernel"])
  })

  it.each(Object.keys(seen))("passes every source, test and client file to %s", (tool) => {
    const missed = [...source, ...tests, ...clients].filter((path) => !seen[tool]?.has(path))
    assert.deepStrictEqual(missed, [])
  })
})
