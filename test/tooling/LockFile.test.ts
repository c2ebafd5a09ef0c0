import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { projectRoot } from "#test/tooling/Planted.ts"

const Entry = Schema.Struct({
  resolved: Schema.optionalKey(Schema.String),
  optionalDependencies: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})

const LockFile = Schema.fromJsonString(Schema.Struct({ packages: Schema.Record(Schema.String, Entry) }))

const { packages } = Schema.decodeUnknownSync(LockFile)(readFileSync(join(projectRoot, "package-lock.json"), "utf8"))

/** Returns whether Node finds the package `name` from the package at `path`: in node_modules of its folder or of a parent folder. */
const finds = (path: string, name: string): boolean => {
  const above = path.split("/node_modules/").map((_, index, parts) => parts.slice(0, index + 1).join("/node_modules/"))
  return ["", ...above].some((place) => (place === "" ? `node_modules/${name}` : `${place}/node_modules/${name}`) in packages)
}

describe("package-lock.json", () => {
  it("lists the optional packages of every platform, because `npm ci` rejects a lock file that lacks one", () => {
    const missing = Object.entries(packages).flatMap(([path, entry]) =>
      Object.keys(entry.optionalDependencies ?? {}).filter((name) => !finds(path, name))
    )
    assert.deepStrictEqual(missing, [])
  })

  it("contains no registry URL", () => {
    const bound = Object.entries(packages).filter(([, entry]) => entry.resolved !== undefined)
    assert.deepStrictEqual(bound, [])
  })
})
