/** The HTTP server: routes, settings, rendering. */
import { ByteSize, Effect, Layer, Option } from "effect"
import { HttpIncomingMessage, HttpMiddleware, HttpRouter } from "effect/http"
import * as Routes from "#http/Routes.ts"
import { TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import { CorsOrigins } from "#http/pipeline/Cors.ts"
import { unroutableResponse } from "#http/pipeline/Errors.ts"
import * as HttpBoundary from "#http/pipeline/HttpBoundary.ts"
import { AccessLog } from "#http/pipeline/RequestLog.ts"
import { RouteTable } from "#http/pipeline/RouteTable.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"
import { AppConfig, publicUrlOf } from "#infra/config/AppConfig.ts"
import * as PdfRenderer from "#infra/pdf/PdfRenderer.ts"
import * as Draining from "#infra/server/Draining.ts"
import * as HttpListener from "#infra/server/HttpListener.ts"

/** Maximum size of a request body. The server rejects a larger body with status 413, and does not read the rest. */
const maxBodySize = Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16))

/**
 * Maximum length of a path parameter for the router. It is longer than a request line can be, so that the endpoints, not the
 * router, reject long ids and VAT IDs.
 */
const maxParamLength = 65_536

const boundary = Layer.provide(HttpBoundary.layer, Layer.succeed(RouteTable, Routes.routeTable))

const httpSettings = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const publicUrl = publicUrlOf(config)
    const upgradeUrl = Option.getOrElse(config.upgradeUrl, () => `${publicUrl}/plans`)
    const contact = Option.getOrNull(config.contact)
    return Layer.mergeAll(
      maxBodySize,
      Layer.succeed(Site, {
        serviceName: config.serviceName,
        publicUrl,
        upgradeUrl,
        contact,
        isSandbox: config.purpose === "sandbox"
      }),
      Layer.succeed(AccessLog, config.logs.access),
      Layer.succeed(CorsOrigins, config.corsOrigins),
      // Disables the span of Effect's HTTP server, which would record the path and the client's address. RequestTelemetry creates
      // another span without them.
      Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
      Layer.succeed(TrustedProxies, { count: config.trustedProxies })
    )
  })
)

/** Limit of open connections of one client address: an eighth of all connections of a process. */
const maxConnectionsPerAddress = 1_024

/** Serves all routes. On shutdown, in-flight requests complete first. */
export const http = Layer.unwrap(
  Effect.gen(function* () {
    const { host, port, shutdownDelay, shutdownGrace: grace, trustedProxies } = yield* AppConfig
    // Behind trusted proxies all connections come from their addresses.
    const perAddress = trustedProxies === 0 ? { maxPerAddress: maxConnectionsPerAddress } : {}
    const listening = HttpRouter.serve(Layer.merge(Routes.layer, boundary), {
      disableLogger: true,
      disableListenLog: true,
      // Makes paths case-sensitive (RFC 9110, 4.2.3), and distinguishes a double slash from a single slash. RouteTable.ts compares
      // paths in the same way.
      routerConfig: { maxParamLength, caseSensitive: true, ignoreDuplicateSlashes: false }
    })
    return Draining.layerBeforeStop(shutdownDelay).pipe(
      Layer.provide(listening),
      Layer.provide(HttpListener.layer({ host, port, grace, refusal: unroutableResponse, ...perAddress })),
      Layer.provide(PdfRenderer.layer)
    )
  })
).pipe(Layer.provide(httpSettings))
