/** Runs oxlint with this project's configuration on temporary files. */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Schema } from "effect"

export const projectRoot = join(import.meta.dirname, "../..")

export const configuration = readFileSync(join(projectRoot, ".oxlintrc.json"), "utf8")

const Report = Schema.fromJsonString(
  Schema.Struct({ diagnostics: Schema.Array(Schema.Struct({ code: Schema.String, filename: Schema.String })) })
)

/** Returns the configured name of a rule from its code in oxlint's report: `node/no-x` from `node(no-x)`, `no-x` from `eslint(no-x)`. */
const ruleName = (code: string): string => code.replace(/^eslint\((.*)\)$/u, "$1").replace(/^([\w-]+)\((.*)\)$/u, "$1/$2")

/** Returns the violated rules of each file, sorted by name. */
export const lintPlanted = (files: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const directory = mkdtempSync(join(tmpdir(), "vatproof-lint-"))
  for (const copied of [".oxlintrc.json", "package.json", "test/tooling/LintPlugin.ts"]) {
    cpSync(join(projectRoot, copied), join(directory, copied), { recursive: true })
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  const oxlint = join(projectRoot, "node_modules/oxlint/bin/oxlint")
  const run = spawnSync(process.execPath, [oxlint, "--format=json", ...Object.keys(files)], { cwd: directory, encoding: "utf8" })
  rmSync(directory, { recursive: true })
  const { diagnostics } = Schema.decodeUnknownSync(Report)(run.stdout)
  return new Map(
    Object.keys(files).map((path) => [
      path,
      diagnostics
        .filter((diagnostic) => diagnostic.filename === path)
        .map((diagnostic) => ruleName(diagnostic.code))
        .toSorted()
    ])
  )
}
