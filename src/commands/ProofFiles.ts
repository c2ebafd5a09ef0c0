/** Reads a proof and its event from files: a .tlog-proof file or a JSON response of the API, and a file with the event. */
import { Effect, FileSystem, Option, Result, Schema } from "effect"
import * as CanonicalJson from "#events/merkle/CanonicalJson.ts"

/** The file has an unknown format. */
class UnusableFile extends Schema.TaggedError<UnusableFile>()("UnusableFile", { message: Schema.String }) {}

const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const readAnswer = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ proof: Schema.String, event: Schema.Unknown }))
)

/** Returns an event as the line of canonical JSON that is signed. The file may have any white space and order of keys. */
const lineOf = (value: unknown, file: string) =>
  Result.mapError(
    CanonicalJson.encode(value),
    ({ message }) => new UnusableFile({ message: `${file} is not an event: ${message}` })
  )

/**
 * Returns the proof in `file`, which is a proof or the JSON response of GET /v1/audit/proofs, and its event. The event comes from
 * `eventFile`, otherwise from the response, otherwise it is null.
 */
export const proofFiles = Effect.fnUntraced(function* (file: string, eventFile: Option.Option<string>) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(file)
  const answer = Option.getOrNull(readAnswer(text))
  const proof = answer?.proof ?? text
  if (Option.isSome(eventFile)) {
    const value = readJson(yield* fs.readFileString(eventFile.value))
    if (Option.isNone(value)) return yield* new UnusableFile({ message: `${eventFile.value} is not JSON` })
    return { proof, event: yield* Effect.fromResult(lineOf(value.value, eventFile.value)) }
  }
  return { proof, event: answer === null ? null : yield* Effect.fromResult(lineOf(answer.event, file)) }
})
