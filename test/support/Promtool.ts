/** Checks exposed metrics with Prometheus's promtool, if Debian's package `prometheus` is installed. */
import { Console, Effect, Stream } from "effect"
import { ChildProcess } from "effect/process"

/** Returns the output of `promtool check metrics`, empty if the metrics are valid. Returns null if promtool is not installed. */
export const checkMetrics = (text: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* ChildProcess.make("promtool", ["check", "metrics"], {
        stdin: Stream.make(new TextEncoder().encode(text))
      })
      const said = yield* Stream.mkString(Stream.decodeText(handle.all))
      return `${said}${(yield* handle.exitCode) === 0 ? "" : "(failed)"}`
    })
  ).pipe(
    Effect.catchTag("PlatformError", () =>
      Effect.as(Console.log("promtool is not installed (apt-get install prometheus): the check of /metrics is skipped"), null)
    )
  )
