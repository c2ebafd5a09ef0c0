/** `vatproof notary …`: the key that signs the log. */
import { Effect, FileSystem, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import * as App from "#app/app.ts"
import { Randomness } from "#domain/Randomness.ts"
import { formatSigningKey, formatVerifier, parseSigner } from "#events/log/NoteKeys.ts"
import { LogSigner } from "#events/LogSigner.ts"
import { TreeStore } from "#events/TreeStore.ts"
import { logCrypto } from "#infra/LogCrypto.ts"
import * as NotaryFiles from "#infra/NotaryFiles.ts"
import * as RandomSource from "#infra/Randomness.ts"
import { json, print, quietly } from "#app/commands/Operation.ts"

const seedBytes = 32

/** What the log is verified with cannot be told here. */
class UnknownSigner extends Schema.TaggedError<UnknownSigner>()("UnknownSigner", { message: Schema.String }) {}

const key = Command.make(
  "key",
  {
    name: Flag.String("name").pipe(
      Flag.optional,
      Flag.withDescription("What the log is called; without it the host of PUBLIC_URL, else SERVICE_NAME, and /log/0")
    ),
    out: Flag.String("out").pipe(
      Flag.optional,
      Flag.withDescription("Write the secret key into this new file, readable by its owner only, instead of printing it")
    ),
    json
  },
  Effect.fnUntraced(function* (flags) {
    const fs = yield* FileSystem.FileSystem
    const random = yield* Randomness
    const name = Option.isSome(flags.name) ? flags.name.value : yield* NotaryFiles.logName
    const seed = Redacted.make(yield* random.bytes(seedBytes))
    const secret = yield* Effect.fromResult(formatSigningKey(logCrypto, name, seed))
    const verifierKey = formatVerifier(yield* Effect.fromResult(parseSigner(logCrypto, name, secret)))
    const text = Redacted.value(secret)
    if (Option.isSome(flags.out)) {
      yield* fs.writeFileString(flags.out.value, `${text}\n`, { flag: "wx", mode: 0o600 })
      const words = `The secret key is in ${flags.out.value}: set NOTARY_KEY_FILE to it, and keep a copy in a safe place.\nPublic key: ${verifierKey}`
      return yield* print(flags.json, { log: name, verifier_key: verifierKey, file: flags.out.value }, words)
    }
    const words = `NOTARY_KEY=${text}\n\nSet this for every replica, and keep a copy in a safe place: a log goes on with its key, or is told of another one (docs/audit.md).\nPublic key: ${verifierKey}`
    return yield* print(flags.json, { log: name, verifier_key: verifierKey, notary_key: text }, words)
  }, Effect.provide(RandomSource.layer))
).pipe(
  Command.withDescription("Make a key that signs the log, and print the public key that verifies it"),
  Command.withShortDescription("Make a key that signs the log"),
  Command.withExamples([
    { command: "vatproof notary key --out /etc/vatproof/notary.key", description: "A key for a service with DATABASE_URL" },
    { command: "vatproof notary key --name vat.example.com/log/0", description: "A key for a log of this name" }
  ])
)

const verifier = Command.make(
  "verifier",
  { json },
  Effect.fnUntraced(
    function* (flags) {
      const { keys, origin } = yield* LogSigner
      if (Option.isNone(keys)) {
        if (Option.isSome(yield* (yield* TreeStore).newest)) {
          const message = `The log ${origin} is signed, but not by a key that is known here: give the command the service's NOTARY_KEY`
          return yield* new UnknownSigner({ message })
        }
        yield* print(
          flags.json,
          { log: origin, verifier_key: null, verifier_keys: [] },
          `The log ${origin} is not signed: there is no NOTARY_KEY`
        )
        return
      }
      const { verifiers } = keys.value
      const all = verifiers.map(formatVerifier)
      yield* print(flags.json, { log: origin, verifier_key: formatVerifier(verifiers[0]), verifier_keys: all }, all.join("\n"))
    },
    Effect.provide(App.auditing),
    quietly
  )
).pipe(
  Command.withDescription("Print the public keys that the log of this service is verified with, the one that signs today first")
)

export const notaryCommands = Command.make("notary").pipe(
  Command.withDescription("The key that signs the log"),
  Command.withSubcommands([key, verifier])
)
