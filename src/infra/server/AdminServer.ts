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
  /** 0 takes any free one. */
  readonly port: number
  /** Number of ports to try, starting with `port`. */
  readonly ports: number
  /** Receives the port once it listens; without it the log shows the address. */
  readonly announce?: (port: number) => Effect.Effect<void>
}

/** Closes connections of slower clients. */
const requestTimeoutMs = 10_000

/** The metrics of this process in the format that the client accepts. */
export const metricsPage = <E, R>(textIn: (format: PrometheusText.Format) => Effect.Effect<string, E, R>) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const format = PrometheusText.formatFor(headers["accept"])
    return HttpServerResponse.text(yield* textIn(format), { contentType: PrometheusText.contentTypes[format] })
  })

export const live = HttpServerResponse.json({ status: "ok" })

/** 200 if this replica can answer requests now; otherwise 503 with the reason. Both report altered evidence. */
const ready = Effect.gen(function* () {
  const { altered, database, notary, service } = yield* (yield* Readiness).report
  const isReady = service === "serving" && database === "ok"
  return yield* HttpServerResponse.json(
    {
      status: isReady ? "ok" : "unavailable",
      service,
      database,
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

/** Does not use the library's router: it is one per process, and these pages must not appear on the service's port. */
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

/** `exclusive`, because workers that share a port would each answer with their own metrics. */
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

/** Serves the given pages instead of those of this process. */
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
