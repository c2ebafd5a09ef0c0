/** `vatproof notary …`: makes and prints the keys of the log, and adopts a log. */
import { Effect, FileSystem, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { isSqlError } from "effect/sql/SqlError"
import * as Operator from "#app/layers/Operator.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { formatSigningKey, formatVerifier, parseSigner } from "#events/log/merkle/NoteKeys.ts"
import * as LogAdoption from "#events/audit/LogAdoption.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { asOperator, by, json, optionalReason, print, quietly } from "#app/commands/Operation.ts"

const seedBytes = 32

/** The key would name the log for ever after a default. */
class UnnamedLog extends Schema.TaggedError<UnnamedLog>()("UnnamedLog", { message: Schema.String }) {}

/** The log is signed, but the command has no NOTARY_KEY to derive the public key from. */
class UnknownSigner extends Schema.TaggedError<UnknownSigner>()("UnknownSigner", { message: Schema.String }) {}

const key = Command.make(
  "key",
  {
    name: Flag.String("name").pipe(
      Flag.optional,
      Flag.withDescription("Name of the log. Default: the host of PUBLIC_URL, followed by /log/0")
    ),
    out: Flag.String("out").pipe(
      Flag.optional,
      Flag.withDescription("Write the secret key into this new file, readable by its owner only, instead of printing it")
    ),
    json
  },
  Effect.fnUntraced(function* (flags) {
    const fs = yield* FileSystem.FileSystem
    const crypto = yield* Crypto
    if (Option.isNone(flags.name) && Option.isNone((yield* AppConfig).publicUrl)) {
      const message = "Set PUBLIC_URL, or add --name: the key has the name of the log, which cannot be changed later"
      return yield* new UnnamedLog({ message })
    }
    const name = Option.isSome(flags.name) ? flags.name.value : yield* NotaryKeys.logName
    const seed = Redacted.make(crypto.randomBytes(seedBytes))
    const secret = yield* Effect.fromResult(formatSigningKey(NodeCrypto.pureCrypto, name, seed))
    const verifierKey = formatVerifier(yield* Effect.fromResult(parseSigner(NodeCrypto.pureCrypto, name, secret)))
    const text = Redacted.value(secret)
    if (Option.isSome(flags.out)) {
      yield* fs.writeFileString(flags.out.value, `${text}\n`, { flag: "wx", mode: 0o600 })
      const words = `The secret key is in ${flags.out.value}: set NOTARY_KEY_FILE to it, and keep a copy in a safe place.\nPublic key: ${verifierKey}`
      return yield* print(flags.json, { log: name, verifier_key: verifierKey, file: flags.out.value }, words)
    }
    const words = `NOTARY_KEY=${text}\n\nSet this on every replica, and keep a copy in a safe place. docs/audit.md explains how to change the key.\nPublic key: ${verifierKey}`
    return yield* print(flags.json, { log: name, verifier_key: verifierKey, notary_key: text }, words)
  }, Effect.provide(NodeCrypto.layer))
).pipe(
  Command.withDescription("Make a key that signs the log, and print its public key"),
  Command.withShortDescription("Make a key that signs the log"),
  Command.withExamples([
    {
      command: "PUBLIC_URL=https://vat.example.com vatproof notary key --out /etc/vatproof/notary.key",
      description: "A key for a service with DATABASE_URL"
    },
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
          const message = `The log ${origin} is signed by a key that this command does not know: set the service's NOTARY_KEY`
          return yield* new UnknownSigner({ message })
        }
        yield* print(
          flags.json,
          { log: origin, verifier_key: null, verifier_keys: [] },
          `The log ${origin} is not signed: NOTARY_KEY is not set`
        )
        return
      }
      const { verifiers } = keys.value
      const all = verifiers.map(formatVerifier)
      yield* print(flags.json, { log: origin, verifier_key: formatVerifier(verifiers[0]), verifier_keys: all }, all.join("\n"))
    },
    Effect.provide(Operator.auditing),
    quietly
  )
).pipe(Command.withDescription("Print the public keys that verify the log of this service, the current one first"))

/** The log was not adopted, because the command lacks the key, the reason or the rights. */
class NotAdopted extends Schema.TaggedError<NotAdopted>()("NotAdopted", { message: Schema.String }) {}

const historyForm = /^(?<events>\d{1,15}):(?<root>[\da-f]{64})$/u

const verified = Flag.String("i-have-verified").pipe(
  Flag.mapTryCatch(
    (text) => {
      const { events = "", root = "" } = historyForm.exec(text)?.groups ?? {}
      return { events: Number(events), root: Option.getOrThrow(Option.liftPredicate(root, (hex) => hex !== "")) }
    },
    () => "Expected <events>:<root>, as printed by the command without this flag"
  ),
  Flag.optional,
  Flag.withDescription(
    "Number of events and root hash of the log that you verified, as <events>:<root>. Without this option the command only prints both, and why the notary refuses the log"
  )
)

const adopt = Command.make(
  "adopt",
  { verified, by, reason: optionalReason, json },
  Effect.fnUntraced(
    function* (flags) {
      const { keys } = yield* LogSigner
      if (Option.isNone(keys))
        return yield* new NotAdopted({ message: "Set the service's NOTARY_KEY: the command needs it to adopt a log" })
      const adoption = yield* LogAdoption.make({ ...(yield* NotaryKeys.checkpointFiles(keys.value)), keys: keys.value })
      const refusal = yield* adoption.refusal
      if (Option.isNone(refusal)) {
        return yield* print(flags.json, { known: true }, "The notary accepts this log: there is nothing to adopt.")
      }
      if (Option.isNone(flags.verified)) {
        yield* adoption.newest
        const { events, root } = yield* adoption.current
        const words = `The notary refuses the log: ${refusal.value}.

First find the reason: \`vatproof audit verify --checkpoint FILE\`, with every checkpoint that was kept. Adopting an altered log
signs the alteration. Only if the log is the right one:

  vatproof notary adopt --i-have-verified ${events}:${root} --reason '…'`
        return yield* print(flags.json, { known: false, refusal: refusal.value, events, root }, words)
      }
      if (Option.isNone(flags.reason))
        return yield* new NotAdopted({ message: "Add --reason: the log records the reason of an adoption" })
      const { events } = flags.verified.value
      const { position } = yield* asOperator(adoption.adopt(flags.verified.value), flags).pipe(
        Effect.catchIf(
          (error) => isSqlError(error) && error.reason._tag === "AuthorizationError",
          () =>
            Effect.fail(
              new NotAdopted({
                message:
                  "The database role of the service may not adopt a log. Run the command with the administrator's DATABASE_URL"
              })
            )
        )
      )
      const words = `The log is adopted with ${events} events; the event at position ${position} records it. A waiting service starts within seconds.`
      return yield* print(flags.json, { known: true, adopted: flags.verified.value, position }, words)
    },
    Effect.provide(Operator.adopting),
    quietly
  )
).pipe(
  Command.withDescription(
    "Make the notary continue a log that it refuses, after you have verified the log: it was not signed so far, its stored tree or checkpoints " +
      "are missing, or it was restored from an older backup. The event LogAdopted records the adoption"
  ),
  Command.withShortDescription("Make the notary continue a log that it refuses"),
  Command.withExamples([
    { command: "vatproof notary adopt", description: "Print why the notary refuses the log, and its size and root hash" },
    {
      command: "vatproof notary adopt --i-have-verified 1200:9c4f… --reason 'Restored from the backup of 02:00'",
      description: "Adopt the log that you verified"
    }
  ])
)

export const notaryCommands = Command.make("notary").pipe(Command.withSubcommands([key, verifier, adopt]))
