/**
 * Metrics of the database connections. The pool does not report its open connections. This module therefore counts the sockets
 * that Node opens to the server's port.
 */
import { Effect, Layer, Metric, Predicate } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { Socket } from "node:net"
import * as Metrics from "#domain/telemetry/Metrics.ts"

const open = Metrics.gauge("vatproof.db.connections", {
  unit: "{connection}",
  description: "Open connections to the database, including those of commands and listeners"
})()

const most = Metrics.gauge("db.client.connection.max", {
  unit: "{connection}",
  description: "Maximum number of connections of the pool"
})({ "db.client.connection.pool.name": "vatproof" })

export interface PoolMetricsOptions {
  /** The port of the Postgres server. Absent if the pool connects through a Unix socket; its connections are then not counted. */
  readonly port?: number
  readonly maxConnections: number
}

const socketOpened = "net.client.socket"

export const layer = ({ maxConnections, port }: PoolMetricsOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Metric.update(most, maxConnections)
      if (port === undefined) return
      const context = yield* Effect.context<never>()
      const change = (by: number) => open.modifyUnsafe(by, context)
      change(0)
      const onOpened = (message: unknown) => {
        if (!Predicate.hasProperty(message, "socket") || !(message.socket instanceof Socket)) return
        const { socket } = message
        socket.once("connect", () => {
          if (socket.remotePort !== port) return
          change(1)
          socket.once("close", () => change(-1))
        })
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => subscribe(socketOpened, onOpened)),
        () => Effect.sync(() => unsubscribe(socketOpened, onOpened))
      )
    })
  )
