/**
 * The operators' port: /metrics for Prometheus, /livez and /readyz for supervisors and load balancers. It starts before the
 * database is used and stops after the last request. It ignores the state of the sources: a service must not be restarted because
 * VIES is down.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import { type HttpBody, HttpMiddleware, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { CannotListen } from "#infra/server/HttpListener.ts"
import { Readiness } from "#infra/server/Readiness.ts"
import * as PrometheusText from "#infra/telemetry/PrometheusText.ts"

export interface AdminServerOptions {
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
  /** Number of ports to try, starting with `port`. */
  readonly ports: number
  /** A function that is called with the port once the server listens. Without this function, the server logs its address. */
  readonly announce?: (port: number) => Effect.Effect<void>
}

/** Timeout for receiving a whole request. */
const requestTimeoutMs = 10_000

/** Responds with the metrics that `textIn` returns, in the format that the client accepts. */
export const metricsPage = <E, R>(textIn: (format: PrometheusText.Format) => Effect.Effect<string, E, R>) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const format = PrometheusText.formatFor(headers["accept"])
    return HttpServerResponse.text(yield* textIn(format), { contentType: PrometheusText.contentTypes[format] })
  })

export const live = HttpServerResponse.json({ status: "ok" })

/**
 * Responds with 200 if this replica can answer requests now, else with 503 and the reason. Both responses tell a full disk, and list
 * stored evidence that was found to be altered.
 */
const ready = Effect.gen(function* () {
  const { altered, database, dataDir, notary, service } = yield* (yield* Readiness).report
  const isReady = service === "serving" && (database === "ok" || database === "full")
  return yield* HttpServerResponse.json(
    {
      status: isReady ? "ok" : "unavailable",
      service,
      database,
      ...(dataDir === "full" ? { data_dir: dataDir } : {}),
      ...(notary === null ? {} : { notary }),
      ...(altered.length === 0 ? {} : { altered })
    },
    { status: isReady ? 200 : 503 }
  )
})

export type Page<R> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  HttpBody.HttpBodyError,
  R | HttpServerRequest.HttpServerRequest
>

const ownPages = new Map<string, Page<Readiness>>([
  ["/metrics", metricsPage(PrometheusText.make)],
  ["/livez", live],
  ["/readyz", ready]
])

/**
 * Responds with the requested page. Does not use Effect's router, because a process has only one router, which serves the
 * service's port.
 */
const answerOf = <E, R>(pages: ReadonlyMap<string, Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>>) =>
  Effect.gen(function* () {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const page = pages.get(url.split("?", 1)[0] ?? "")
    if (page === undefined) return HttpServerResponse.empty({ status: 404 })
    return method === "GET" || method === "HEAD"
      ? yield* page
      : HttpServerResponse.empty({ status: 405, headers: { allow: "GET, HEAD" } })
  })

const announced = (announce: AdminServerOptions["announce"]) =>
  Layer.effectDiscard(
    Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
      announce === undefined || !("port" in address)
        ? Effect.logInfo(`Metrics, /livez and /readyz are on ${HttpServer.formatAddress(address)}`)
        : announce(address.port)
    )
  )

/**
 * Listens on the first free port of `ports` consecutive ports, beginning with `port`. The port is exclusive, because each worker
 * needs its own port for its own metrics.
 */
const listener = ({
  host,
  port,
  ports
}: AdminServerOptions): Layer.Layer<Layer.Success<ReturnType<typeof listenerAt>>, CannotListen> =>
  listenerAt(host, port).pipe(
    Layer.catchTag("ServeError", (error) =>
      ports > 1 && port > 0
        ? listener({ host, port: port + 1, ports: ports - 1 })
        : Layer.effectContext(Effect.fail(new CannotListen({ host, port, cause: error.cause })))
    )
  )

const listenerAt = (host: string, port: number) =>
  NodeHttpServer.layer(() => createServer({ requestTimeout: requestTimeoutMs }), {
    host,
    port,
    exclusive: true,
    gracefulShutdownTimeout: "1 second"
  })

/** Serves the given pages on the admin port. */
export const serving = <E, R>(
  pages: ReadonlyMap<string, Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>>,
  options: AdminServerOptions
) =>
  HttpServer.serve(answerOf(pages)).pipe(
    Layer.merge(announced(options.announce)),
    Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)),
    Layer.provide(listener(options))
  )

export const layer = (options: AdminServerOptions) => serving(ownPages, options)
