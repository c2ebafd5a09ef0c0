/**
 * The operators' port of a service with several workers: one address per machine. /readyz responds with 200 while any worker is
 * ready, also during the replacement of a worker, and has the report of each worker. /metrics has the metrics of all workers, with the label `worker`.
 */
import { Effect, Layer, Option, Record, Schema } from "effect"
import { HttpClient, HttpServerResponse } from "effect/http"
import * as AdminServer from "#infra/server/AdminServer.ts"
import * as PrometheusText from "#infra/telemetry/PrometheusText.ts"

export interface WorkersAdminOptions extends AdminServer.AdminServerOptions {
  /** The admin port of each worker by its number. */
  readonly adminPorts: ReadonlyMap<number, number>
}

/** Timeout of a request to a worker. A slower worker is left out of the response. */
const timeout = "3 seconds"

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

const make = Effect.fnUntraced(function* (adminPorts: ReadonlyMap<number, number>) {
  const http = yield* HttpClient.HttpClient

  /** Reads a page from each worker; omits workers that do not answer. */
  const fetchPages = (path: string, accept = "*/*") =>
    Effect.forEach(
      [...adminPorts].toSorted(([a], [b]) => a - b),
      ([number, port]) =>
        http.get(`http://127.0.0.1:${port}${path}`, { headers: { accept } }).pipe(
          Effect.flatMap(({ status, text }) => Effect.map(text, (body) => ({ number, status, body }))),
          Effect.timeout(timeout),
          Effect.catchTag(["HttpClientError", "TimeoutError"], () => Effect.succeed(null))
        ),
      { concurrency: "unbounded" }
    ).pipe(Effect.map((answers) => answers.filter((answer) => answer !== null)))

  const ready = Effect.gen(function* () {
    const pages = yield* fetchPages("/readyz")
    const readyWorkers = pages.filter(({ status }) => status === 200).map(({ number }) => number)
    const workers = Record.fromIterableWith(pages, ({ body, number }) => [String(number), Option.getOrNull(decodeJson(body))])
    const isReady = readyWorkers.length > 0
    return yield* HttpServerResponse.json(
      { status: isReady ? "ok" : "unavailable", ready_workers: readyWorkers, workers },
      { status: isReady ? 200 : 503 }
    )
  })

  const metrics = AdminServer.metricsPage((format) =>
    Effect.map(fetchPages("/metrics", PrometheusText.contentTypes[format]), (texts) => {
      const text = merged(texts.map(({ body, number }) => [String(number), body] as const))
      return format === "openmetrics" ? `${text}${PrometheusText.end}\n` : text
    })
  )

  return new Map<string, AdminServer.Page<never>>([
    ["/livez", AdminServer.live],
    ["/readyz", ready],
    ["/metrics", metrics]
  ])
})

/**
 * Merges the metrics of several workers. The format requires that all series of a metric stand together, under one HELP and one
 * TYPE line.
 */
export const merged = (texts: ReadonlyArray<readonly [worker: string, text: string]>): string => {
  const families = new Map<string, { readonly head: ReadonlyArray<string>; readonly series: Array<string> }>()
  for (const [worker, text] of texts) {
    let head: ReadonlyArray<string> = []
    let name = ""
    for (const line of text.split("\n")) {
      if (line.startsWith("# HELP ")) head = [line]
      else if (line.startsWith("# TYPE ")) {
        head = [...head, line]
        name = line.split(" ")[2] ?? ""
      } else if (line !== "" && line !== PrometheusText.end) {
        const family = families.get(name) ?? { head, series: [] }
        families.set(name, family)
        family.series.push(
          // Adds the label `worker` to the labels of the metric, which precede the value. The labels of an exemplar follow the
          // value and stay unchanged.
          line.replace(/^(\w+)(?:\{(.*?)\})? (?=[-+\dN])/u, (_, metric, labels) => `${metric}{${labelled(worker, labels)}} `)
        )
      }
    }
  }
  return [...families.values()].flatMap(({ head, series }) => [...head, ...series].map((line) => `${line}\n`)).join("")
}

const labelled = (worker: string, labels: string | undefined) => [`worker="${worker}"`, ...(labels ? [labels] : [])].join(",")

export const layer = ({ adminPorts, ...options }: WorkersAdminOptions) =>
  Layer.unwrap(Effect.map(make(adminPorts), (pages) => AdminServer.serving(pages, options)))
