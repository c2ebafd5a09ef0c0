// Builds what a release publishes, in build/release/<version>, and publishes nothing: npm run release -- <version>
//
// The folder has the package, the images where Docker is, the SBOM (CycloneDX), the section of the CHANGELOG, and SHA256SUMS of them all.
import { execFileSync, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const [version = ""] = process.argv.slice(2)
const text = (path) => readFileSync(join(root, path), "utf8")
const json = (path) => JSON.parse(text(path))
const say = (line) => process.stdout.write(`${line}\n`)
const output = (program, ...args) => execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 })

/** The section of a version without its heading; undefined if it is missing. */
const section = (heading) =>
  text("CHANGELOG.md")
    .split(/^## /mu)
    .find((part) => part.split("\n", 1)[0] === heading)
const released = text("CHANGELOG.md").match(new RegExp(`^## (${RegExp.escape(version)} \\(\\d{4}-\\d{2}-\\d{2}\\))$`, "mu"))?.[1]

const refusals = Object.entries({
  "Give the version: npm run release -- 0.1.0": !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/u.test(version),
  "Commit or remove the changes of the working tree first": output("git", "status", "--porcelain") !== "",
  "package.json has another version": json("package.json").version !== version,
  "package-lock.json has another version": json("package-lock.json").version !== version,
  "openapi.json has another version": json("openapi.json").info.version !== version,
  "src/domain/kernel/Version.ts has another version": !text("src/domain/kernel/Version.ts").includes(`"${version}"`),
  "CHANGELOG.md has no section with the version and a date, as in `## 0.1.0 (2026-12-01)`": released === undefined,
  "test/faults/fixtures lacks the version: npm run fixture": !existsSync(join(root, `test/faults/fixtures/${version}.sql.gz`))
}).filter(([, isRefused]) => isRefused)
const build = () => {
  const target = join(root, "build/release", version)
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  const write = (name, content) => writeFileSync(join(target, name), content)

  output("node", "--disable-warning=ExperimentalWarning", "scripts/package.mjs")
  copyFileSync(join(root, `build/vatproof-${version}.tgz`), join(target, `vatproof-${version}.tgz`))
  write("sbom.cdx.json", output("npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"))
  write("NOTES.md", `# Vatproof ${section(released)}`)

  if (spawnSync("docker", ["info"], { stdio: "ignore" }).status === 0) {
    for (const [stage, tag] of [
      ["service", version],
      ["sandbox", `${version}-sandbox`]
    ]) {
      execFileSync("docker", ["build", "--tag", `vatproof:${tag}`, "--target", stage, "."], { cwd: root, stdio: "inherit" })
      execFileSync("docker", ["save", "--output", join(target, `vatproof-${tag}.image.tar`), `vatproof:${tag}`])
    }
  } else {
    say("Skipped: the images, because no Docker engine answers")
  }

  const sum = (name) =>
    createHash("sha256")
      .update(readFileSync(join(target, name)))
      .digest("hex")
  write(
    "SHA256SUMS",
    readdirSync(target)
      .toSorted()
      .map((name) => `${sum(name)}  ${name}\n`)
      .join("")
  )
  say(`${join("build/release", version)}: ${readdirSync(target).toSorted().join(", ")}`)
  say(`Next: sign SHA256SUMS and the tag v${version}, then publish`)
}

if (refusals.length === 0) {
  build()
} else {
  process.stderr.write(`${refusals.map(([refusal]) => `release: ${refusal}`).join("\n")}\n`)
  process.exitCode = 1
}
