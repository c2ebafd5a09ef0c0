/** `vatproof audit export`: writes the log, or a period of it, into a folder for auditors. */
import { type DateTime, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import * as Operator from "#app/layers/Operator.ts"
import * as LogExport from "#events/log/export/LogExport.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import * as LogPeriod from "#domain/log/LogPeriod.ts"
import { AppConfig, publicUrlOf } from "#infra/config/AppConfig.ts"
import { asOperator, by, json, optionalReason, print, quietly } from "#app/commands/Operation.ts"
import * as Progress from "#app/commands/Progress.ts"
import { leftOutJson, leftOutSentence } from "#app/commands/ExportExtent.ts"

/** Creates the option for the start or the end of the exported period. `momentOf` parses a UTC day or a time. */
const bound = (name: string, description: string, momentOf: (text: string) => Option.Option<DateTime.Utc>) =>
  Flag.String(name).pipe(
    Flag.mapTryCatch(
      (text) => Option.getOrThrow(momentOf(text)),
      () => "Expected a day as 2026-11-21, or a time as 2026-11-21T09:30:00Z (milliseconds at most)"
    ),
    Flag.optional,
    Flag.withDescription(description)
  )

export const exportLog = Command.make(
  "export",
  {
    from: bound("from", "First day (UTC) or first time of the export. Default: the beginning of the log", LogPeriod.startOf),
    to: bound(
      "to",
      "Last day (UTC) of the export, or the time before which it ends. Default: the end of the log",
      LogPeriod.endOf
    ),
    out: Flag.String("out").pipe(Flag.withDescription("The folder for the files: a new or an empty one")),
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const config = yield* AppConfig
      const { keys } = yield* LogSigner
      const progress = yield* Progress.make("events exported")
      const manifest = yield* LogExport.run({
        directory: flags.out,
        from: Option.getOrNull(flags.from),
        to: Option.getOrNull(flags.to),
        supplier: config.serviceName,
        location: publicUrlOf(config),
        verifierKeys: Option.match(keys, { onNone: () => [], onSome: ({ verifiers }) => verifiers.map(formatVerifier) }),
        progress
      })
      const { from, log, size, to } = manifest
      const words = `${flags.out} has ${to - from} events of the log ${log}: positions ${from} to ${to - 1} of ${size} signed events. ${leftOutSentence(manifest)}
README.txt describes the files. Verify the export with: npm run vatproof -- audit verify --export ${flags.out}`
      yield* print(flags.json, { out: flags.out, log, from, to, size, ...leftOutJson(manifest) }, words)
    },
    Effect.provide(Operator.auditing),
    quietly,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Write the log, or a period of it, into a folder for auditors: tables with index.xml for the programs of tax authorities (GoBD), all " +
      "events as JSON lines, receipts with their proofs, and the signed checkpoint"
  ),
  Command.withShortDescription("Write the log into a folder for auditors"),
  Command.withExamples([
    { command: "vatproof audit export --from 2026-01-01 --to 2026-12-31 --out audit-2026", description: "One year" },
    { command: "vatproof audit export --out everything", description: "Every signed event" }
  ])
)
