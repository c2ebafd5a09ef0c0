/** Compares what the clients know about the interface with openapi.json. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

it.each([
  ["typescript", "clients/typescript/src/types.ts"],
  ["python", "clients/python/vatproof_client/operations.py"]
])("the operations of the client for %s equal openapi.json (to write them: this file with -u)", (language, file) => {
  const { stderr, stdout } = spawnSync(process.execPath, ["scripts/client-types.mjs", language], {
    cwd: projectRoot,
    encoding: "utf8"
  })
  expect(stderr).toBe("")
  return expect(stdout).toMatchFileSnapshot(join(projectRoot, file))
})
