/**
 * Reads a proof and its event from files. The proof is a .tlog-proof file or part of a JSON response of the API. The event is in a
 * separate file or in that response.
 */
import { Effect, FileSystem, Option, Result, Schema } from "effect"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"

/** The content of a file is not JSON or not an event. */
class UnusableFile extends Schema.TaggedError<UnusableFile>()("UnusableFile", { message: Schema.String }) {}

const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const readAnswer = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ proof: Schema.String, event: Schema.Unknown }))
)

/**
 * Returns an event as a line of canonical JSON, which the verification needs. The white space and the order of keys in the file have no
 * effect.
 */
const lineOf = (value: unknown, file: string) =>
  Result.mapError(
    CanonicalJson.encode(value),
    ({ message }) => new UnusableFile({ message: `${file} is not an event: ${message}` })
  )

/**
 * Returns a proof and the proved event. `file` contains the proof alone, or the JSON response of GET /v1/audit/proofs with the proof
 * and the event. An event in `eventFile` takes precedence over the event in the response. Without both, the event is null.
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
