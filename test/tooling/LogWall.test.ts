/** Runs the tests of the log in a copy of the project that lacks the service. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inject } from "vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

/** The folders of the service. The log must work without them. */
const service = ["vat", "callers", "pending", "receipts", "accounts", "audit"].map((subject) => `src/events/${subject}`)
const deleted = [...service, "src/http", "src/infra/sources", "src/layers", "src/commands"]

/** Tests of the log that use the service: its catalogue, its projections, or its running process. */
const ofService = [
  "database/DatabaseBreaker",
  "database/QueryPolicyPlans",
  "notary/SignedLeaves",
  "projections/ProjectionRebuild",
  "projections/Projections",
  "store/AppendRateWindows",
  "verify/AuditAttacks",
  "verify/DatabaseAudit",
  "verify/ProjectionAudit"
].map((name) => `test/events/log/${name}.test.ts`)

it("the tests of the log pass without the service", () => {
  const directory = mkdtempSync(join(tmpdir(), "vatproof-log-"))
  for (const copied of ["src", "migrations", "package.json", "vitest.config.ts", "test/support", "test/events/log"])
    cpSync(join(projectRoot, copied), join(directory, copied), { recursive: true })
  symlinkSync(join(projectRoot, "node_modules"), join(directory, "node_modules"))
  for (const path of [...deleted, ...ofService]) rmSync(join(directory, path), { recursive: true })
  const vitest = [process.execPath, "node_modules/vitest/vitest.mjs", "run", "--reporter=dot"]
  const environment = [`TEST_DATABASE_URL=${inject("administratorUrl")}`, "NO_COLOR=1"]
  const run = spawnSync("env", [...environment, ...vitest], { cwd: directory, encoding: "utf8" })
  rmSync(directory, { recursive: true })
  assert.match(run.stdout, /Test Files {2}\d+ passed \(\d+\)/u, run.stdout + run.stderr)
  assert.strictEqual(run.status, 0)
})
