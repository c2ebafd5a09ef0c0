/** Reads a proof, and the event it proves, from the forms in which people have them. */
import { Effect, FileSystem, Option, Result, Schema } from "effect"
import * as CanonicalJson from "#events/merkle/CanonicalJson.ts"

/** The file has an unknown form. */
class UnusableFile extends Schema.TaggedError<UnusableFile>()("UnusableFile", { message: Schema.String }) {}

const readJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
const readAnswer = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ proof: Schema.String, event: Schema.Unknown }))
)

/** The canonical line of an event, however it is laid out: only what it says is signed, not its white space. */
const lineOf = (value: unknown, file: string) =>
  Result.mapError(
    CanonicalJson.encode(value),
    ({ message }) => new UnusableFile({ message: `${file} is not an event: ${message}` })
  )

/** `file` is a proof, or the whole answer of GET /v1/audit/proofs as JSON; an event of its own goes before the one in there. */
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
