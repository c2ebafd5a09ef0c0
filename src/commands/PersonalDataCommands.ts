/** `vatproof personal-data …`: shows and erases the stored data of a company or person. */
import { DateTime, Effect, Result, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { AccountDirectory } from "#events/accounts/AccountDirectory.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import { parse } from "#domain/vat/VatId.ts"
import { PersonalErasure, type PersonalRow, type PersonalSubject } from "#events/audit/PersonalErasure.ts"
import { asOperator, by, iso, json, operate, optionalReason, print, reason } from "#app/commands/Operation.ts"
import { moment, table } from "#app/commands/Table.ts"

const subject = Argument.String("subject").pipe(
  Argument.withDescription("A VAT ID, the id of a receipt, or the user_id or email address of an account")
)

/**
 * Returns the receipt, VAT ID or account that the text identifies. Receipt ids and VAT IDs are recognized by their form. Any other text
 * must identify an account.
 */
const subjectOf = Effect.fnUntraced(function* (text: string) {
  const receiptId = ReceiptId.normalize(text)
  if (ReceiptId.isWellFormed(receiptId)) return { _tag: "Receipt", receiptId } satisfies PersonalSubject
  const vatId = parse(text)
  if (Result.isSuccess(vatId)) return { _tag: "VatId", vatId: vatId.success.value } satisfies PersonalSubject
  const directory = yield* AccountDirectory
  return { _tag: "Account", accountId: (yield* directory.find(text)).accountId } satisfies PersonalSubject
})

const stateOf = ({ document, is_held }: PersonalRow) => {
  if (document === null) return "erased"
  return is_held ? "held" : "kept"
}

const decodeDocument = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

const rowJson = (row: PersonalRow) => ({
  position: Number(row.position),
  type: row.type,
  stream_id: row.stream_id,
  vat_id: row.vat_id,
  recorded_at: iso(row.recorded_at),
  state: stateOf(row),
  retain_until: iso(row.retain_until),
  changed_by: row.changed_by === null ? null : Number(row.changed_by),
  document: row.document === null ? null : decodeDocument(row.document)
})

const show = Command.make(
  "show",
  { subject, reason: optionalReason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const { show } = yield* PersonalErasure
      const rows = yield* show(yield* subjectOf(flags.subject))
      const words = table<PersonalRow>(
        [
          { heading: "POSITION", cell: ({ position }) => Number(position) },
          { heading: "TYPE", cell: ({ type }) => type },
          { heading: "VAT ID", cell: ({ vat_id }) => vat_id },
          { heading: "RECORDED (UTC)", cell: ({ recorded_at }) => moment(recorded_at) },
          { heading: "STATE", cell: stateOf },
          { heading: "RETAINED UNTIL (UTC)", cell: ({ retain_until }) => moment(retain_until) }
        ],
        rows
      )
      const found = rows.length === 0 ? "There are no personal documents." : `${words}\n\nUse --json to print the documents.`
      yield* print(flags.json, { documents: rows.map(rowJson) }, found)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Show the personal documents about a VAT ID, of a receipt or of an account, for access and portability requests"
  ),
  Command.withShortDescription("Show stored personal documents"),
  Command.withExamples([
    { command: "vatproof personal-data show DE123456789 --json", description: "All documents, for the person concerned" }
  ])
)

/** Documents on legal hold were not erased. The other documents are. */
class DocumentsHeld extends Schema.TaggedError<DocumentsHeld>()("DocumentsHeld", { held: Schema.Int }) {
  override get message() {
    return `${this.held} personal documents are on legal hold and were not erased`
  }
}

const erase = Command.make(
  "erase",
  { subject, reason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const erasure = yield* PersonalErasure
      const whose = yield* subjectOf(flags.subject)
      const before = yield* erasure.find(whose)
      const erased = new Set(yield* erasure.erase(whose))
      const now = yield* DateTime.now
      const early = before.filter(
        ({ position, retain_until }) => erased.has(Number(position)) && DateTime.isGreaterThan(retain_until, now)
      )
      const held = before.filter((row) => row.is_held).length
      const words = `${erased.size} personal documents are erased. Their events, proofs and receipt numbers stay.${early.length === 0 ? "" : `\n${early.length} of the erased documents were still in their retention period.`}`
      yield* print(flags.json, { erased: [...erased], held, before_retention_ended: early.length }, words)
      if (held > 0) return yield* new DocumentsHeld({ held })
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Erase the personal documents about a VAT ID, of a receipt or of an account. The events and their proofs stay. Documents on legal hold stay too, and the command then ends with exit code 1"
  ),
  Command.withShortDescription("Erase personal documents"),
  Command.withExamples([
    {
      command: 'vatproof personal-data erase DE123456789 --reason "Art. 17, ticket 4711"',
      description: "All documents about a VAT ID"
    }
  ])
)

const hold = Command.make(
  "hold",
  { subject, reason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const erasure = yield* PersonalErasure
      const positions = yield* erasure.hold(yield* subjectOf(flags.subject))
      yield* print(flags.json, { held: [...positions] }, `${positions.length} personal documents are now on legal hold.`)
    },
    operate,
    asOperator
  )
).pipe(Command.withDescription("Put a legal hold on personal documents, which prevents their erasure"))

const release = Command.make(
  "release",
  { subject, reason: optionalReason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const erasure = yield* PersonalErasure
      const positions = yield* erasure.release(yield* subjectOf(flags.subject))
      yield* print(
        flags.json,
        { released: [...positions] },
        `${positions.length} personal documents are no longer on legal hold.`
      )
    },
    operate,
    asOperator
  )
).pipe(Command.withDescription("Lift the legal hold on personal documents"))

export const personalDataCommands = Command.make("personal-data").pipe(Command.withSubcommands([show, erase, hold, release]))
