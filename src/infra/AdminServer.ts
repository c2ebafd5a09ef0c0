/**
 * The port for operators alone: /metrics for Prometheus, /livez and /readyz for whatever restarts and balances replicas. It starts before
 * the database is asked for anything and stops after the last request, and knows nothing of the sources: a service is not restarted
 * because VIES is down.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import { HttpMiddleware, HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { Readiness } from "#infra/Readiness.ts"
import * as PrometheusText from "#infra/telemetry/PrometheusText.ts"

export interface AdminServerOptions {
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
}

/** Where the admin server listens, `http://127.0.0.1:9464`; null where there is none. */
export class AdminAddress extends Context.Service<AdminAddress, { readonly url: string | null }>()("vatproof/infra/AdminAddress") {}

/** A client that sends a request slower than this is cut off. */
const requestTimeoutMs = 10_000

const metrics = HttpRouter.add(
  "GET",
  "/metrics",
  Effect.map(PrometheusText.make, (body) => HttpServerResponse.text(body, { contentType: PrometheusText.contentType }))
)

const live = HttpRouter.add("GET", "/livez", HttpServerResponse.json({ status: "ok" }))

/** 200 if requests can be answered here now; else 503, and why. */
const ready = HttpRouter.add(
  "GET",
  "/readyz",
  Effect.gen(function* () {
    const { database, service } = yield* (yield* Readiness).report
    const isReady = service === "serving" && database === "ok"
    return yield* HttpServerResponse.json(
      { status: isReady ? "ok" : "unavailable", service, database },
      { status: isReady ? 200 : 503 }
    )
  })
)

const address = Layer.effect(
  AdminAddress,
  Effect.map(HttpServer.HttpServer, (server) => ({ url: HttpServer.formatAddress(server.address) }))
)

export const layer = ({ host, port }: AdminServerOptions) =>
  HttpRouter.serve(Layer.mergeAll(metrics, live, ready), { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)),
    Layer.provideMerge(address),
    Layer.provide(NodeHttpServer.layer(() => createServer({ requestTimeout: requestTimeoutMs }), { host, port, gracefulShutdownTimeout: "1 second" }))
  )

/** Where the settings want none. */
export const layerNone = Layer.succeed(AdminAddress, { url: null })
