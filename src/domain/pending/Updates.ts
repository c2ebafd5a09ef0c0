/** The use case of clients that follow the updates of their API key, instead of polling each validation and batch. */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { pollEveryMs } from "#domain/pending/PendingValidations.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { type UpdatePage, UpdateReader, type UpdatesRequest } from "#domain/pending/UpdateReader.ts"

const make = Effect.gen(function* () {
  const reader = yield* UpdateReader
  const signals = yield* TaskSignals

  /** Waits for a page that is not empty. All waiting clients share the statement that looks for new updates of their keys. */
  const awaitPage = Effect.fnUntraced(function* (request: UpdatesRequest, wait: Duration.Duration, empty: UpdatePage) {
    const { from, keyId } = request
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
    let [seen, page] = [from, empty]
    while (page.updates.length === 0) {
      const nowMs = yield* Clock.currentTimeMillis
      if (nowMs >= until) return page
      const head = yield* reader.head(keyId)
      if (head > seen) page = yield* reader.page(request)
      else yield* signals.awaitClosed(keyId, Math.min(until - nowMs, pollEveryMs - (nowMs % pollEveryMs)))
      seen = Math.max(seen, head)
    }
    return page
  })

  /** Returns a page of updates. Waits for an update if the page is empty. */
  const read = Effect.fn("Updates.read")(function* (request: UpdatesRequest, wait: Duration.Duration) {
    const page = yield* reader.page(request)
    if (page.updates.length > 0 || !Duration.isPositive(wait)) return page
    return yield* signals.inPlace(request.keyId, awaitPage(request, wait, page), Effect.succeed(page))
  })

  return { read, head: reader.head }
})

export class Updates extends Context.Service<Updates, Effect.Success<typeof make>>()("vatproof/domain/pending/Updates") {
  static readonly layer = Layer.effect(Updates, make)
}
