/** The files that operate the service name what exists: metrics, runbooks, settings and files. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as PrometheusText from "#infra/telemetry/PrometheusText.ts"
import { projectRoot } from "#test/tooling/Planted.ts"

const operations = join(projectRoot, "docs/operations")
const read = (path: string) => readFileSync(join(operations, path), "utf8")
const filesIn = (folder: string) => readdirSync(join(operations, folder)).toSorted()

const rules = filesIn("prometheus/rules").map((file) => read(`prometheus/rules/${file}`))
const dashboards = filesIn("grafana/dashboards").map((file) => read(`grafana/dashboards/${file}`))

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found)

const alerts = rules.flatMap((text) => matches(text, /- alert: (\w+)/gu))
const recorded = rules.flatMap((text) => matches(text, /- record: (\S+)/gu))

/** The metrics of a query, without its functions, labels and grouping. */
const metricsOf = (query: string): ReadonlyArray<string> =>
  matches(
    query
      .replaceAll(/\{(?:"[^"]*"|[^}"])*\}/gu, "{}")
      .replaceAll(/\[[^\]]*\]/gu, "")
      .replaceAll(/\b(?:by|on|without|ignoring)\s*\([^)]*\)/gu, ""),
    /\b([a-z][a-z0-9]*_[a-z0-9_]+|vatproof:[\w:]+)\b(?!\s*\()/gu
  )

const queries = [
  ...rules.flatMap((text) => matches(`${text}\n`, /expr: (?:\|\n)?([\s\S]*?)\n(?= *(?:for|labels|- record|- alert)\b|\n|$)/gu)),
  ...dashboards.flatMap((text) =>
    matches(text, /"(?:expr|definition)": "((?:[^"\\]|\\.)*)"/gu).map((query) => query.replaceAll('\\"', '"'))
  )
]

/** Each metric that the code defines: its kind, name and unit. */
const defined = readdirSync(join(projectRoot, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
  .flatMap((text) => [
    ...text.matchAll(
      /\b(counter|upDownCounter|gauge|histogram)\(\s*"([\w.]+)",\s*(?:\w+(?:\.\w+)?,\s*)?(?:\{\s*unit:\s*)?"([^"]+)"/gu
    )
  ])
  .map(([, kind = "", name = "", unit = ""]) => ({ kind, name, unit }))

/** A series of it, as the code makes one. */
const update = ({ kind, name, unit }: (typeof defined)[number]): Effect.Effect<void> => {
  const attributes = { unit }
  switch (kind) {
    case "counter":
      return Metric.update(Metric.counter(name, { incremental: true, attributes }), 1)
    case "upDownCounter":
      return Metric.update(Metric.counter(name, { attributes }), 1)
    case "gauge":
      return Metric.update(Metric.gauge(name, { attributes }), 1)
    default:
      return Metric.update(Metric.histogram(name, { boundaries: [1], attributes }), 1)
  }
}

describe("alerts and dashboards", () => {
  it("are found by this test at all", () => {
    assert.isAbove(alerts.length, 10)
    assert.isAbove(queries.length, 60)
    assert.isAbove(defined.length, 20)
  })

  it.effect("name no metric that the service does not have", () =>
    Effect.gen(function* () {
      yield* Effect.forEach(defined, update)
      const text = yield* PrometheusText.make("text")
      const known = new Set([...matches(text, /^([a-z]\w*)/gmu), ...recorded, "up", "job", "absent"])
      const unknown = queries.flatMap(metricsOf).filter((name) => !known.has(name))
      assert.deepStrictEqual([...new Set(unknown)], [])
    })
  )

  it("use every series that is recorded for them", () => {
    const used = new Set(queries.flatMap(metricsOf))
    assert.deepStrictEqual(
      recorded.filter((name) => !used.has(name)),
      []
    )
  })

  it("have a runbook for every alert, which it links to, and no other", () => {
    const pages = alerts.map((alert) => `${alert}.md`).toSorted()
    assert.deepStrictEqual(filesIn("runbooks"), pages)
    const linked = rules.flatMap((text) => matches(text, /runbook_url: docs\/operations\/runbooks\/(\S+)/gu))
    assert.deepStrictEqual(linked.toSorted(), pages)
    for (const page of pages) {
      const text = read(`runbooks/${page}`)
      for (const part of ["## Impact", "## Look", "## Act"]) assert.include(text, part, page)
    }
  })

  it("are tested, every alert", () => {
    const tested = new Set(matches(read("prometheus/alerts.test.yml"), /alertname: (\w+)/gu))
    assert.deepStrictEqual(
      alerts.filter((alert) => !tested.has(alert)),
      []
    )
  })
})

describe("the proxy", () => {
  it("keeps the same ids of callers as the service: both name a request alike", () => {
    const start = readFileSync(join(projectRoot, "src/http/pipeline/RequestStart.ts"), "utf8")
    const kept = matches(start, /const usableRequestId = \/(.+)\/u\n/gu)
    assert.strictEqual(kept.length, 1)
    assert.deepStrictEqual(matches(read("proxy/haproxy.cfg"), /req\.fhdr\(X-Request-Id\) -m reg '(.+)'/gu), kept)
  })

  it("logs no path: it would hold a VAT ID", () => {
    const [format = ""] = matches(read("proxy/haproxy.cfg"), /log-format (.+)/gu)
    assert.include(format, "request_id")
    assert.notMatch(format, /%(?:\+?\w*)?(?:r|HU|HP|HPO|HQ|hr|hrl)\b|path|url|query/u)
  })
})

describe("the compose file", () => {
  const compose = readFileSync(join(projectRoot, "docker-compose.yml"), "utf8")

  it("mounts files that exist", () => {
    const mounted = matches(compose, /- \.\/(\S+?):\//gu)
    assert.isAbove(mounted.length, 5)
    assert.deepStrictEqual(
      mounted.filter((path) => !existsSync(join(projectRoot, path))),
      []
    )
  })

  it("stops what has not begun to listen to signals yet: process 1 would not hear them", () => {
    const [, ...sections] = compose.split(/\n {2}(?=\w+:\n)/u)
    const ours = sections.filter((section) => /image: vatproof$/mu.test(section) && !section.startsWith("prepare:"))
    assert.deepStrictEqual(
      ours.map((section) => section.split(":")[0]),
      ["migrate", "service"]
    )
    for (const section of ours) assert.match(section, /^ {4}init: true$/mu)
  })

  it("sets only settings that the service reads", () => {
    const [, service = ""] = /\n {2}service:\n([\s\S]*?)\n\n {2}\w/u.exec(compose) ?? []
    const set = matches(service, /^ {6}([A-Z][A-Z0-9_]+):/gmu)
    assert.isAbove(set.length, 10)
    assert.deepStrictEqual(unreadOf(set), [])
  })
})

/** The settings that the service does not read. */
const unreadOf = (names: ReadonlyArray<string>) => {
  const config = ["infra/config/AppConfig.ts", "infra/telemetry/TelemetrySettings.ts", "infra/config/FileSecrets.ts"]
    .map((file) => readFileSync(join(projectRoot, "src", file), "utf8"))
    .join("\n")
  const signal = (name: string) => name.replace(/_(?:TRACES|METRICS|LOGS)_/u, "_${signal}_")
  const reads = (name: string) =>
    [name, signal(name), name.replace(/_FILE$/u, "")].some(
      (known) => config.includes(`"${known}"`) || config.includes(`\`${known}\``)
    )
  return names.filter((name) => !reads(name))
}

describe("the images", () => {
  it("are pinned by digest", () => {
    const files = ["Dockerfile", "docker-compose.yml", "docs/operations/kubernetes/vatproof.yaml"]
    const images = files.flatMap((file) =>
      matches(readFileSync(join(projectRoot, file), "utf8"), /^(?: *(?:- )?image: |FROM )(\S+)/gmu)
    )
    assert.isAbove(images.length, 8)
    assert.deepStrictEqual(
      images.filter((image) => image !== "vatproof" && !/@sha256:[0-9a-f]{64}$/u.test(image)),
      []
    )
  })
})

describe("the manifests and the unit", () => {
  const manifest = read("kubernetes/vatproof.yaml")
  const unit = read("systemd/vatproof.service")
  const ownNames = new Set(["NODE_ENV", "MALLOC_ARENA_MAX"])

  it("set only settings that the service reads", () => {
    const [, config = ""] = /\ndata:\n([\s\S]*?)\n---/u.exec(manifest) ?? []
    const set = [
      ...matches(config, /^ {2}([A-Z][A-Z0-9_]+):/gmu),
      ...matches(manifest, /\{ name: ([A-Z][A-Z0-9_]+), value/gu),
      ...matches(unit, /[ =]([A-Z][A-Z0-9_]+)=/gu)
    ]
    assert.isAbove(set.length, 12)
    assert.deepStrictEqual(unreadOf(set.filter((name) => !ownNames.has(name))), [])
  })

  it("mount the secrets that they name, and probe pages that exist", () => {
    const secrets = read("kubernetes/secrets.yaml")
    for (const name of matches(manifest, /value: \/run\/\w+\/([\w-]+)/gu)) assert.match(secrets, new RegExp(`^  ${name}: `, "mu"))
    for (const name of matches(unit, /_FILE=%d\/([\w-]+)/gu)) assert.include(unit, `LoadCredential=${name}:`)
    const admin = readFileSync(join(projectRoot, "src/infra/server/AdminServer.ts"), "utf8")
    const probed = matches(manifest, /path: (\/\w+), port: admin/gu)
    assert.lengthOf(probed, 3)
    for (const path of probed) assert.include(admin, `"${path}"`)
  })

  it("leave more time for a stop than it takes", () => {
    const seconds = matches(manifest, /SHUTDOWN_(?:DELAY|GRACE): (\d+)s/gu).map(Number)
    const [grace = 0] = matches(manifest, /terminationGracePeriodSeconds: (\d+)/gu).map(Number)
    assert.isAbove(
      grace,
      seconds.reduce((sum, value) => sum + value, 5)
    )
  })
})
