/** OTLP receiver that discards all data. It makes the service export telemetry during a benchmark, as in production. */
import { Effect } from "effect"
import { createServer } from "node:http"

export const make = Effect.gen(function* () {
  let exports = 0
  const server = createServer((request, response) => {
    exports += 1
    request.resume()
    request.on("end", () => response.writeHead(200, { "content-type": "application/x-protobuf" }).end())
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, exports: Effect.sync(() => exports) }
})
