/** Checks the relative links of the documents: the file exists, and the heading of an anchor too. */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, it } from "@effect/vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

const documents = spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: projectRoot,
  encoding: "utf8"
})
  .stdout.split("\n")
  .filter((path) => path !== "" && existsSync(join(projectRoot, path)))

/** Returns the anchors that a forge makes for the headings of a document. */
const anchorsOf = (text: string) =>
  Array.from(text.matchAll(/^#+ (.*)$/gmu), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-")
  )

/** Returns the links of a document that lead nowhere. */
const brokenIn = (path: string) => {
  const text = readFileSync(join(projectRoot, path), "utf8")
  return Array.from(text.replaceAll(/```.*?```/gsu, "").matchAll(/\]\((?!\w+:|\/)([^)#\s]*)(?:#([^)\s]*))?\)/gu))
    .filter(([, file = "", anchor]) => {
      const target = file === "" ? join(projectRoot, path) : join(projectRoot, dirname(path), file)
      if (!existsSync(target)) return true
      return anchor !== undefined && target.endsWith(".md") && !anchorsOf(readFileSync(target, "utf8")).includes(anchor)
    })
    .map(([link]) => `${path}: ${link}`)
}

it("each relative link of a document leads to a file and to a heading", () => {
  assert.isAbove(documents.length, 20)
  assert.deepStrictEqual(documents.flatMap(brokenIn), [])
})
