/** `vatproof audit verify`: verifies the database, an export or one proof. */
import { Effect, FileSystem, Option, Path, Runtime, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as Operator from "#app/layers/Operator.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import * as ExportAudit from "#events/log/export/ExportAudit.ts"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import * as ReceiptAudit from "#events/log/verify/ReceiptAudit.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { Verifier } from "#events/log/merkle/NoteKeys.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { logStream, LogVerified } from "#domain/log/LogReadEvents.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import * as NotaryKeys from "#infra/security/NotaryKeys.ts"
import { asOperator, by, json, optionalReason, print, quietly, remark } from "#app/commands/Operation.ts"
import * as Progress from "#app/commands/Progress.ts"
import { proofFiles } from "#app/commands/ProofFiles.ts"
import * as VerifierKeys from "#app/commands/VerifierKeys.ts"
import * as Witnesses from "#app/commands/Witnesses.ts"
import { type Extent, leftOutJson, leftOutSentence } from "#app/commands/ExportExtent.ts"

/** The verification found defects in the log. The command then ends with exit code 1. */
class LogAltered extends Schema.TaggedError<LogAltered>()("LogAltered", { message: Schema.String }) {}

/** The verification found no defect, but it did not compare a checkpoint of --checkpoint. */
class CheckpointNotCompared extends Schema.TaggedError<CheckpointNotCompared>()("CheckpointNotCompared", {
  message: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 2
}

/** Maximum number of findings in the text output. With --json the command prints up to a thousand findings. */
const maxShown = 50

const documentsIn = (documents: DatabaseAudit.AuditReport["documents"]) =>
  documents === null
    ? "The export has no personal documents: they were removed from it."
    : `Personal documents: ${documents.kept} intact, ${documents.erased} erased.`

/** Says that a log is a sandbox; empty for a live log. */
const sandboxWords = ({ verifiers: [{ name }] }: VerifierKeys.UsedKeys) =>
  purposeIn(name) === "live" ? "" : `SANDBOX: the answers in the log ${name} are simulated and no evidence.\n`

interface VerificationResult {
  readonly asJson: boolean
  readonly what: string
  readonly report: DatabaseAudit.AuditReport
  readonly key: VerifierKeys.UsedKeys
  readonly witnesses: ReadonlyArray<Verifier>
  /** The verified checkpoints, whose cosignatures are printed. */
  readonly notes: ReadonlyArray<string>
  readonly extent: Extent | null
}

/** Prints the result of a verification. Fails with LogAltered if there are findings. */
const printResult = Effect.fnUntraced(function* ({ asJson, key, report, notes, extent, what, witnesses }: VerificationResult) {
  const sightings = report.count > 0 ? [] : yield* Witnesses.sightingsIn(notes, witnesses)
  const { adopted, checkpoints, count, documents, events, findings, signed, signedBy } = report
  const list = findings
    .slice(0, maxShown)
    .map(({ message, position }) => `  ${position === null ? "" : `position ${position}: `}${message}`)
    .join("\n")
  const others = extent === null ? "" : ` ${leftOutSentence(extent)}`
  const unsigned = events > signed ? ` ${events - signed} newer events are not signed yet.` : ""
  const good = `${sandboxWords(key)}The ${what} is intact: ${signed} events match ${checkpoints} signed ${checkpoints === 1 ? "checkpoint" : "checkpoints"} of the log ${key.verifiers[0].name}.${unsigned}${others}
${documentsIn(documents)}
The newest checkpoint is signed with ${signedBy.join(`\n${" ".repeat(32)}and `)}${Witnesses.wordsOf(sightings, witnesses.length)}`
  const found = `the verification found ${count} ${count === 1 ? "defect" : "defects"} in ${events} events`
  const bad = `The ${what} does not match its signatures: ${found}.\n${list}${count > maxShown ? `\n  … and ${count - maxShown} more` : ""}`
  const data = {
    ok: count === 0,
    purpose: purposeIn(key.verifiers[0].name),
    events,
    signed,
    checkpoints,
    signed_by: signedBy,
    adopted,
    personal_documents: documents === null ? null : { ...documents },
    witnessed: sightings.map((sighting) => ({ ...sighting })),
    findings: findings.map((finding) => ({ ...finding })),
    count,
    ...(extent === null ? {} : leftOutJson(extent))
  }
  yield* print(asJson, data, count === 0 ? good : bad)
  if (key.note !== null) yield* remark(key.note)
  for (const position of adopted)
    yield* remark(
      `An operator adopted the log (event at position ${position}). Only checkpoints kept outside the database prove the events before that position.`
    )
  if (count > 0) return yield* new LogAltered({ message: `The ${what} was altered: ${found}` })
})

/**
 * Records the verification as an event of the log. If the database rejects the event, for example because it is altered or read-only,
 * the command prints a warning. The result of the verification stays the same.
 */
const record = Effect.fnUntraced(
  function* ({ count, events, signed }: DatabaseAudit.AuditReport) {
    const { appendFact } = yield* EventStore
    yield* appendFact(logStream, LogVerified.make({ events, signed, findings: count }))
  },
  Effect.catchCause(() => remark("The verification could not be recorded in the log. Its result is not affected."))
)

/**
 * The options that the functions for all three kinds of verification receive: of a database, of an export and of a proof.
 * `refuseUnused` has already rejected each option that has no effect on the requested kind.
 */
interface VerifyFlags {
  readonly json: boolean
  readonly fast: boolean
  readonly key: Option.Option<string>
  readonly checkpoint: ReadonlyArray<string>
  readonly witness: ReadonlyArray<string>
}

/** Returns the checkpoints in the given files, and the checkpoints that the service stored in DATA_DIR. */
const keptCheckpoints = Effect.fnUntraced(function* (files: ReadonlyArray<string>, { verifiers }: VerifierKeys.UsedKeys) {
  const fs = yield* FileSystem.FileSystem
  const given = yield* Effect.forEach(files, (at) => Effect.map(fs.readFileString(at), (note) => ({ note, at })))
  const { loadSeen } = yield* NotaryKeys.checkpointFiles({ signers: [], verifiers })
  return [...given, ...(yield* loadSeen)]
})

const verifyDatabase = Effect.fnUntraced(
  function* ({ checkpoint, fast, json: asJson, key, witness }: VerifyFlags) {
    const { keys } = yield* LogSigner
    const used = yield* VerifierKeys.forDatabase(key, keys)
    const witnesses = yield* Witnesses.witnessesOf(witness)
    const kept = yield* keptCheckpoints(checkpoint, used)
    const progress = yield* Progress.make("events verified")
    const report = yield* DatabaseAudit.run({
      verifiers: used.verifiers,
      kept,
      schema: yield* SchemaComparison.load,
      isFast: fast,
      progress
    })
    yield* record(report)
    const notes = kept.map(({ note }) => note)
    yield* printResult({ asJson, what: "log", report, key: used, witnesses, notes, extent: null })
  },
  Effect.provide(Operator.auditing),
  quietly
)

const verifyExport = Effect.fnUntraced(
  function* ({ checkpoint, json: asJson, key, witness }: VerifyFlags, directory: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const used = yield* VerifierKeys.forExport(key, directory)
    const witnesses = yield* Witnesses.witnessesOf(witness)
    const kept = yield* keptCheckpoints(checkpoint, used)
    const progress = yield* Progress.make("events verified")
    const report = yield* ExportAudit.run({ directory, verifiers: used.verifiers, kept, progress })
    const own = yield* fs.readFileString(path.join(directory, exportFiles.checkpoint))
    const notes = [own, ...kept.filter(({ at }) => !report.uncompared.includes(at)).map(({ note }) => note)]
    yield* printResult({ asJson, what: "export", report, key: used, witnesses, notes, extent: report.extent })
    const wordsOf = (at: string) => `The checkpoint in ${at} was not compared, because its last event is not in the export`
    for (const at of report.uncompared.filter((other) => !checkpoint.includes(other))) yield* remark(`${wordsOf(at)}.`)
    const requested = report.uncompared.filter((at) => checkpoint.includes(at))
    if (requested.length > 0) return yield* new CheckpointNotCompared({ message: requested.map(wordsOf).join("; ") })
  },
  Effect.provideService(Crypto, pureCrypto),
  Effect.provide(logCatalogue)
)

const verifyProof = Effect.fnUntraced(function* (
  { json: asJson, key, witness }: VerifyFlags,
  file: string,
  eventFile: Option.Option<string>
) {
  const given = yield* proofFiles(file, eventFile)
  const used = yield* VerifierKeys.forProof(key, given.proof)
  const witnesses = yield* Witnesses.witnessesOf(witness)
  const { checkpoint, event, index, leaf, note, personal } = yield* Effect.fromResult(
    ReceiptAudit.run(pureCrypto, { ...given, verifiers: used.verifiers })
  )
  const sightings = yield* Witnesses.sightingsIn([note], witnesses)
  const document = personal === null ? "" : `\nIts personal document: ${personal}.`
  const words = `${sandboxWords(used)}Proved: the event at position ${index} is in the log ${checkpoint.origin} as it was signed with ${checkpoint.size} events.${document}
${event ?? `${leaf}\n(The data of the event was not verified: add the event with --event.)`}${Witnesses.wordsOf(sightings, witnesses.length)}`
  const witnessed = sightings.map((sighting) => ({ ...sighting }))
  const { origin: log, size } = checkpoint
  yield* print(
    asJson,
    { ok: true, purpose: purposeIn(log), position: index, log, size, leaf, with_event: event !== null, personal, witnessed },
    words
  )
  if (used.note !== null) yield* remark(used.note)
})

/**
 * The operator set an option that has no effect on this verification. The command rejects the option: if it ignored the option, its
 * success would seem to cover more than it verified.
 */
class UnusedOption extends Schema.TaggedError<UnusedOption>()("UnusedOption", { message: Schema.String }) {}

interface Sources {
  readonly export: Option.Option<string>
  readonly proof: Option.Option<string>
  readonly event: Option.Option<string>
  readonly checkpoint: ReadonlyArray<string>
  readonly by: Option.Option<string>
  readonly reason: Option.Option<string>
  readonly fast: boolean
}

const refuseUnused = ({ by: actor, checkpoint, event, fast, export: directory, proof, reason }: Sources) => {
  const [hasProof, hasExport] = [Option.isSome(proof), Option.isSome(directory)]
  const ofDatabase = !hasProof && !hasExport
  const unused: ReadonlyArray<readonly [applies: boolean, message: string]> = [
    [hasProof && hasExport, "Give --proof or --export, not both"],
    [Option.isSome(event) && !hasProof, "--event works only with --proof"],
    [checkpoint.length > 0 && hasProof, "--checkpoint does not work with --proof: a proof has its own checkpoint"],
    [fast && !ofDatabase, "--fast works only for the verification of a database, not with --export or --proof"],
    [
      (Option.isSome(actor) || Option.isSome(reason)) && !ofDatabase,
      "--by and --reason work only for the verification of a database, because only that verification is recorded in the log"
    ]
  ]
  const found = unused.find(([applies]) => applies)
  return found === undefined ? Effect.void : Effect.fail(new UnusedOption({ message: found[1] }))
}

export const verify = Command.make(
  "verify",
  {
    export: Flag.String("export").pipe(
      Flag.optional,
      Flag.withDescription("Verify the export in this folder instead of the database")
    ),
    proof: Flag.String("proof").pipe(
      Flag.optional,
      Flag.withDescription(
        "Verify the proof of one event instead of the database: a .tlog-proof file, or the JSON response of GET /v1/audit/proofs"
      )
    ),
    event: Flag.String("event").pipe(
      Flag.optional,
      Flag.withDescription("With --proof: a file with the event, for example one in the folder receipts/ of an export")
    ),
    key: Flag.String("key").pipe(
      Flag.optional,
      Flag.withDescription(
        "The log's public key, several keys separated by spaces, or a file with them. Default: the keys of the configured service"
      )
    ),
    checkpoint: Flag.String("checkpoint").pipe(
      Flag.between(0, 100),
      Flag.withDescription(
        "With the database or an export: a file with a checkpoint that you kept, which the log must continue; repeatable. " +
          "Checkpoints in DATA_DIR are always used"
      )
    ),
    fast: Flag.Boolean("fast").pipe(
      Flag.withDefault(false),
      Flag.withDescription(
        "Verify the database faster, for daily use: the database computes the hashes of the events, and the command reads only the events where these differ from the stored tree"
      )
    ),
    witness: Witnesses.witness,
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(function* (flags) {
    yield* refuseUnused(flags)
    if (Option.isSome(flags.proof)) return yield* verifyProof(flags, flags.proof.value, flags.event)
    if (Option.isSome(flags.export)) return yield* verifyExport(flags, flags.export.value)
    return yield* verifyDatabase(flags)
  }, asOperator)
).pipe(
  Command.withDescription(
    "Prove that nothing was changed: recompute leaves and tree, verify the signatures, and compare personal documents and every projection " +
      "with the events. Prints the position of each defect, and ends with exit code 1 if there is one, or with 2 if a given checkpoint could not be compared. The service may run meanwhile"
  ),
  Command.withShortDescription("Prove that nothing was changed"),
  Command.withExamples([
    { command: "vatproof audit verify", description: "The database of this service" },
    { command: "vatproof audit verify --fast", description: "The database, as a faster daily check" },
    {
      command: "vatproof audit verify --checkpoint kept-in-june.txt",
      description: "The database, and that its log continues the checkpoint kept in June"
    },
    { command: "vatproof audit verify --export audit-2026 --key public-key.txt", description: "An export, without any database" },
    {
      command: "vatproof audit verify --proof VP-QC-20261120-A7K2M9P4R3.tlog-proof --event VP-QC-20261120-A7K2M9P4R3.json",
      description: "One receipt"
    }
  ])
)
