/** Builds a release of a copy of the project, and refuses a project that is not ready for it. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { appendFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { projectRoot } from "#test/tooling/Planted.ts"

const parts = [
  "CHANGELOG.md",
  "LICENSE",
  "docs",
  "README.md",
  "migrations",
  "openapi.json",
  "package-lock.json",
  "package.json",
  "scripts",
  "src",
  "test/faults/fixtures"
]

const run = (cwd: string, program: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(program, args, { cwd, encoding: "utf8" })
  return { status, output: `${stdout}${stderr}` }
}

const release = (folder: string, version: string) => run(folder, process.execPath, "scripts/release.mjs", version)

const commit = (folder: string) => {
  run(folder, "git", "add", "--all")
  const author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
  run(folder, "git", ...author, "commit", "--quiet", "--message", "Test")
}

it("a release has the package, the SBOM, the section of the CHANGELOG and their sums, and is the same when built again", ({
  onTestFinished
}) => {
  const folder = mkdtempSync(join(tmpdir(), "vatproof-release-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const part of parts) cpSync(join(projectRoot, part), join(folder, part), { recursive: true })
  symlinkSync(join(projectRoot, "node_modules"), join(folder, "node_modules"))
  writeFileSync(join(folder, ".gitignore"), "node_modules\nbuild/\n")
  run(folder, "git", "init", "--quiet")
  const changelog = join(folder, "CHANGELOG.md")
  writeFileSync(changelog, readFileSync(changelog, "utf8").replace(/^## 0\.1\.0 .*$/mu, "## 0.1.0 (2026-12-01)"))
  commit(folder)
  const built = release(folder, "0.1.0")
  assert.strictEqual(built.status, 0, built.output)
  const target = join(folder, "build/release/0.1.0")
  const files = ["NOTES.md", "SHA256SUMS", "sbom.cdx.json", "vatproof-0.1.0.tgz"]
  assert.includeMembers(readdirSync(target), files)
  assert.match(readFileSync(join(target, "NOTES.md"), "utf8"), /^# Vatproof 0\.1\.0 \(2026-12-01\)\n\nValidation\n/u)
  assert.include(readFileSync(join(target, "sbom.cdx.json"), "utf8"), '"bomFormat": "CycloneDX"')
  assert.strictEqual(run(target, "sha256sum", "--check", "--strict", "SHA256SUMS").status, 0)
  const listed = run(target, "tar", "--extract", "--to-stdout", "--file", "vatproof-0.1.0.tgz", "package/package.json").output
  assert.match(listed, /"version": "0\.1\.0"[\s\S]*"bin": \{/u)
  assert.notInclude(listed, '"private"')

  const sumOf = (name: string) =>
    readFileSync(join(target, "SHA256SUMS"), "utf8")
      .split("\n")
      .find((line) => line.endsWith(name))
  const before = sumOf("vatproof-0.1.0.tgz")
  assert.strictEqual(release(folder, "0.1.0").status, 0)
  assert.strictEqual(sumOf("vatproof-0.1.0.tgz"), before)

  assert.match(release(folder, "0.2.0").output, /package\.json has another version[\s\S]*CHANGELOG\.md has no section/u)
  appendFileSync(changelog, "\n")
  const dirty = release(folder, "0.1.0")
  assert.deepStrictEqual([dirty.status, dirty.output], [1, "release: Commit or remove the changes of the working tree first\n"])
}, 120_000)
