/**
 * Pushes signed checkpoints to a location outside the control of the database's administrators: a folder, or an HTTPS URL that
 * accepts PUT. Runs in the background, at most once a minute. After a failed push, the next push has the newest checkpoint.
 */
import { DateTime, Duration, Effect, FileSystem, MutableRef, Option, Path, Redacted, Schedule, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import * as Worker from "#domain/concurrency/Worker.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"
import { isUrl, newestFile } from "#infra/security/NotaryKeys.ts"

const pollEvery = "1 second"
const pushEvery = Duration.minutes(1)
const timeout = "10 seconds"
/** Retries after 1, 2 and 4 seconds. If all retries fail, the next push follows in a minute, with the newest checkpoint. */
const retries = Schedule.exponential("1 second").pipe(Schedule.upTo({ times: 3 }))

/** The push failed. The message excludes the URL, which may contain a password. */
class MirrorFailed extends Schema.TaggedError<MirrorFailed>()("MirrorFailed", { message: Schema.String }) {}

const toFolder = Effect.fnUntraced(function* (directory: string, note: string) {
  const fs = yield* FileSystem.FileSystem
  const atomic = yield* AtomicFile.make
  const path = yield* Path.Path
  const day = DateTime.formatIsoDateUtc(yield* DateTime.now)
  // Creates the folder with the default mode, so that other users can read it. AtomicFile would create it with mode 700.
  yield* fs.makeDirectory(directory, { recursive: true })
  for (const name of [`${newestFile}-${day}`, newestFile]) yield* atomic.replace(path.join(directory, name), note)
})

const toUrl = Effect.fnUntraced(function* (place: string, note: string) {
  const http = yield* HttpClient.HttpClient
  const url = new URL(place)
  const { password, username } = url
  url.username = url.password = ""
  const request = HttpClientRequest.put(url.href).pipe(HttpClientRequest.bodyText(note, "text/plain; charset=utf-8"))
  const { status } = yield* http
    .execute(
      username === ""
        ? request
        : HttpClientRequest.basicAuth(request, decodeURIComponent(username), Redacted.make(decodeURIComponent(password)))
    )
    .pipe(Effect.timeout(timeout))
  if (status < 200 || status > 299) return yield* new MirrorFailed({ message: `its server responded with status ${status}` })
})

/**
 * Returns a function that stores the checkpoint for the next push and returns at once. Without CHECKPOINT_MIRROR the function
 * does nothing.
 */
export const make = Effect.gen(function* () {
  const { checkpointMirror } = yield* AppConfig
  if (Option.isNone(checkpointMirror)) return () => Effect.void
  const place = Redacted.value(checkpointMirror.value)
  const path = yield* Path.Path
  const offered = MutableRef.make("")
  let pushed = ""
  let pushedAtMs = Number.NEGATIVE_INFINITY

  const push = Effect.gen(function* () {
    const note = MutableRef.get(offered)
    const now = yield* monotonicMs
    if (note === pushed || now - pushedAtMs < Duration.toMillis(pushEvery)) return
    pushedAtMs = now
    yield* Effect.gen(function* () {
      if (isUrl(place)) return yield* toUrl(place, note)
      return yield* toFolder(path.resolve(place), note)
    }).pipe(
      Effect.retry(retries),
      Effect.tap(() => Effect.sync(() => (pushed = note))),
      Effect.catchTag(["PlatformError", "HttpClientError", "MirrorFailed", "TimeoutError"], (error) =>
        Effect.logWarning(
          `A checkpoint could not be copied to CHECKPOINT_MIRROR (${error._tag === "MirrorFailed" ? error.message : error._tag}); retrying with the newest checkpoint in a minute`
        )
      )
    )
  })
  yield* Worker.loop("Copying a checkpoint to CHECKPOINT_MIRROR", push, { schedule: Schedule.spaced(pollEvery) })
  return (note: string) => Effect.sync(() => void MutableRef.set(offered, note))
})
