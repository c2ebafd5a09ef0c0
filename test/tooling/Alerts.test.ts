/** The alerts: each has a runbook and a case, promtool accepts them, and those on the surroundings fire in a real Prometheus. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Schedule, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpClient } from "effect/http"
import { ChildProcess } from "effect/process"
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "#test/support/RunningService.ts"
import { layer } from "#test/support/Test.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

const folder = join(projectRoot, "docs/operations/prometheus")
const read = (path: string) => readFileSync(join(folder, path), "utf8")
const rules = readdirSync(join(folder, "rules")).map((name) => `rules/${name}`)
const alertsIn = (text: string) => Array.from(text.matchAll(/^ {6}- alert: (\w+)$/gmu), ([, name = ""]) => name)
const isInstalled = (program: string) => spawnSync(program, ["--version"]).status === 0

describe("the alerts", () => {
  it("have a runbook and a case each", () => {
    const alerts = rules.flatMap((path) => alertsIn(read(path)))
    assert.isAbove(alerts.length, 25)
    const cases = `${read("alerts.test.yml")}${read("surroundings.test.yml")}`
    for (const alert of alerts) {
      assert.isTrue(existsSync(join(projectRoot, `docs/operations/runbooks/${alert}.md`)), `${alert} has no runbook`)
      assert.include(cases, `/${alert}.md`, `no case of ${alert} fires`)
    }
    const runbooks = readdirSync(join(projectRoot, "docs/operations/runbooks")).map((name) => name.replace(/\.md$/u, ""))
    assert.sameMembers(runbooks, alerts)
  })

  it("are accepted by promtool, and those on the surroundings fire in its cases", (context) => {
    context.skip(!isInstalled("promtool"), "skipped: promtool is not installed")
    // The cases of alerts.test.yml last days of minutes, which takes promtool minutes.
    for (const args of [
      ["check", "rules", ...rules],
      ["test", "rules", "surroundings.test.yml"]
    ]) {
      const { status, stderr, stdout } = spawnSync("promtool", args, { cwd: folder, encoding: "utf8" })
      assert.strictEqual(status, 0, `${stdout}${stderr}`)
    }
  })
})

/** What the exporters of a machine in trouble tell. The counter grows with each scrape. */
const metricsOf = (scrapes: number): Readonly<Record<string, string>> => ({
  node: `node_filesystem_avail_bytes{fstype="ext4",mountpoint="/"} 9
node_filesystem_size_bytes{fstype="ext4",mountpoint="/"} 100
vatproof_backup_success_time_seconds{vatproof_backup="base"} 1
`,
  postgres: `pg_stat_archiver_failed_count ${scrapes}
pg_replication_lag_seconds 90
pg_replication_is_replica 1
`,
  "vatproof-probe": `probe_success 0
probe_ssl_earliest_cert_expiry 1
`
})

const exporters = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
    let scrapes = 0
    const server = createServer(({ url = "" }, response) => {
      scrapes += 1
      response.end(metricsOf(scrapes)[url.slice(1)])
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      resume(Effect.succeed({ port, close: () => void server.close().closeAllConnections() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const decode = Schema.decodeUnknownEffect(
  Schema.Struct({
    data: Schema.Struct({
      alerts: Schema.Array(Schema.Struct({ state: Schema.String, labels: Schema.Struct({ alertname: Schema.String }) }))
    })
  })
)

const ground = Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici, SecureRandom.layerWebCrypto)

layer(ground, { excludeTestServices: true })("a real Prometheus", (it) => {
  it.effect("fires each alert on the surroundings", function* (context) {
    context.skip(!isInstalled("prometheus"), "skipped: prometheus is not installed")
    const { port } = yield* exporters
    const data = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-prometheus-"))),
      (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
    )
    const text = read("rules/surroundings.yml")
    // Alerts fire without their waiting times.
    writeFileSync(join(data, "rules.yml"), text.replace(/^(\s+for:) .*$/gmu, "$1 0s"))
    const jobs = Object.keys(metricsOf(0)).map(
      (job) => `  - { job_name: ${job}, metrics_path: /${job}, static_configs: [{ targets: ["127.0.0.1:${port}"] }] }\n`
    )
    const config = `global: { scrape_interval: 1s, evaluation_interval: 1s }\nrule_files: [rules.yml]\nscrape_configs:\n${jobs.join("")}`
    writeFileSync(join(data, "prometheus.yml"), config)
    const listen = yield* freePort
    const flags = [
      `--config.file=${data}/prometheus.yml`,
      `--storage.tsdb.path=${data}/tsdb`,
      `--web.listen-address=127.0.0.1:${listen}`
    ]
    yield* ChildProcess.make("prometheus", flags, { stdin: "ignore", stdout: "ignore", stderr: "ignore", killSignal: "SIGKILL" })
    const http = yield* HttpClient.HttpClient
    const firing = Effect.gen(function* () {
      const { alerts } = (yield* decode(yield* (yield* http.get(`http://127.0.0.1:${listen}/api/v1/alerts`)).json)).data
      return alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname)
    })
    const expected = alertsIn(text)
    const seen = yield* firing.pipe(
      Effect.retry(Schedule.spaced("200 millis")),
      Effect.repeat({
        until: (names) => expected.every((name) => names.includes(name)),
        schedule: Schedule.spaced("200 millis")
      }),
      Effect.timeout("40 seconds")
    )
    assert.sameMembers([...new Set(seen)], expected)
  })
})
