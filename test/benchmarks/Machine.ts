/** Describes the machine, so that readers can compare figures of different machines. */
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { cpus, loadavg, platform, release, totalmem } from "node:os"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"

const system = () => {
  if (platform() !== "linux") return `${platform()} ${release()}`
  return `Linux ${release()}, ${/^PRETTY_NAME="(.*)"$/mu.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "unknown"}`
}

export const describe = Effect.map(PostgresServer, ({ description }): ReadonlyArray<string> => {
  const [first] = cpus()
  const load = loadavg()[0]?.toFixed(2) ?? "unknown"
  return [
    `${cpus().length} × ${first?.model.trim() ?? "unknown processor"}, ${(totalmem() / 1e9).toFixed(1)} GB, ${system()}`,
    `Node ${process.versions.node}; ${description}`,
    `load of the machine before the run: ${load}`
  ]
})
