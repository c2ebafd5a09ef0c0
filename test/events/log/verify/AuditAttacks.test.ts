/**
 * The attacks of a superuser on the stored evidence, each with the parts of the program that must notice it: `audit verify` in both
 * modes, the scrubber, a start of the service, and the reads (the auditors' search, receipts, validations, batch results).
 *
 * Each attack runs on a copy of one signed history (AttackedService.ts). All guards are on again before the parts look, so that no
 * attack is found by its missing guard. A new attack is one row; if it needs more history, add the history to AttackedService.ts.
 */
import * as AttackedService from "#test/support/AttackedService.ts"
import { schemaAttacks } from "#test/support/SchemaAttacks.ts"
import { assert, layer } from "#test/support/Test.ts"

/**
 * An attack. `verify` is the finding of the full verification, and also of the fast one unless `fast` differs. A part whose text is
 * null or absent must say nothing. A read that is absent in `reads` must be served.
 */
interface Attack {
  readonly name: string
  readonly statements: (ids: AttackedService.AttackedService["Service"]["ids"]) => ReadonlyArray<string>
  readonly verify: RegExp | null
  readonly fast?: RegExp | null
  readonly scrub: RegExp | null
  readonly start?: RegExp
  readonly reads?: Partial<AttackedService.Notices["reads"]>
}

const altered = "EVIDENCE_ALTERED"

/** SQL for the position of the event that issued the receipt. */
const ofReceipt = (receiptId: string) =>
  `(SELECT position FROM vatproof.events WHERE stream_id = 'receipt-${receiptId}' AND version = 1)`

/** Creates an operator that hides a wrong plan from every query that finds the operator first. */
const evilOperator = [
  "CREATE SCHEMA evil",
  `CREATE FUNCTION evil.get(jsonb, text) RETURNS text LANGUAGE sql IMMUTABLE AS
    'SELECT CASE $2 WHEN ''plan'' THEN ''enterprise'' ELSE jsonb_extract_path_text($1, $2) END'`,
  "CREATE OPERATOR evil.->> (LEFTARG = jsonb, RIGHTARG = text, FUNCTION = evil.get)",
  "GRANT USAGE ON SCHEMA evil TO PUBLIC",
  "UPDATE vatproof.accounts SET plan = 'enterprise'"
]
const evilPath = "SET search_path = evil, pg_catalog, public"

const attacks: ReadonlyArray<Attack> = [
  { name: "no change", statements: () => [], verify: null, scrub: null },
  {
    name: "a changed event",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.events SET data = replace(data, 'evatr-0000', 'evatr-0001') WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the event differs from the signed event$/mu,
    scrub: /^The event at position \d+ differs from the signed event$/mu,
    start: /the notary refuses to sign this log: The event at position \d+ differs/u,
    reads: { receipt: altered }
  },
  {
    name: "a changed personal document",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.personal_documents SET document = replace(document, 'Muster', 'Master') WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the personal document does not match the digest in its event$/mu,
    scrub: /^Wrong at position \d+: the personal document does not match the digest in its event$/mu,
    reads: { receipt: altered }
  },
  {
    name: "a personal document that no event erased",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.personal_documents SET document = NULL WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the personal document is erased, but no event records the erasure$/mu,
    scrub: /^Wrong at position \d+: the personal document is erased, but no event records the erasure$/mu,
    reads: { receipt: altered }
  },
  {
    name: "an erasure that names another event",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.personal_documents SET document = NULL, changed_by = position + 1 WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the personal document is erased, but no event records the erasure$/mu,
    scrub: /^Wrong at position \d+: the personal document is erased, but no event records the erasure$/mu,
    reads: { receipt: altered }
  },
  {
    name: "a deleted personal document",
    statements: ({ receiptId }) => [`DELETE FROM vatproof.personal_documents WHERE position = ${ofReceipt(receiptId)}`],
    verify: /^\d+: the personal document is missing$/mu,
    scrub: /^Wrong at position \d+: the personal document is missing$/mu,
    reads: { receipt: altered }
  },
  {
    name: "a legal hold that no event records",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.personal_documents SET is_held = true WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the legal hold on the personal document contradicts the events$/mu,
    scrub: /^Wrong at position \d+: the legal hold on the personal document contradicts the events$/mu
  },
  {
    name: "a changed end of the retention period",
    statements: ({ receiptId }) => [
      `UPDATE vatproof.personal_documents SET retain_until = now() WHERE position = ${ofReceipt(receiptId)}`
    ],
    verify: /^\d+: the personal document is kept until .*, but the event says .*$/mu,
    scrub: /^Wrong at position \d+: the personal document is kept until .*, but the event says .*$/mu
  },
  {
    name: "a personal document outside of the log",
    statements: () => [
      "INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 90000, '{}', now())"
    ],
    verify: /^90000: there is a personal document outside of the positions of the log$/mu,
    scrub: /^Wrong at position 90000: there is a personal document outside of the positions of the log$/mu
  },
  {
    name: "a plan that a search path of the database hides",
    statements: () => [...evilOperator, `EXECUTE format('ALTER DATABASE %I ${evilPath}', current_database())`],
    verify: /^\d+: accounts [-0-9a-f]+: the row differs from what the events produce, in plan(?:, \w+)*$/mu,
    scrub: /^The projection accounts is wrong at position \d+$/mu,
    start: /^The schema differs from this version's, .*: setting search_path of the database: /mu
  },
  {
    name: "a plan that a search path of a role hides",
    statements: () => [
      ...evilOperator,
      `EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I ${evilPath}', current_database())`
    ],
    verify: /^\d+: accounts [-0-9a-f]+: the row differs from what the events produce, in plan(?:, \w+)*$/mu,
    scrub: /^The projection accounts is wrong at position \d+$/mu,
    start: /^The schema differs from this version's, .*: setting search_path of the role \w+ in the database: /mu
  },
  {
    name: "a cancelled validation with the answer of another one",
    statements: ({ cancelled, validation }) => [
      `UPDATE vatproof.tasks t SET state = 'final', closed_by = o.closed_by FROM vatproof.tasks o
        WHERE t.task_id = '${cancelled}' AND o.task_id = '${validation}'`
    ],
    verify: /^\d+: tasks [-0-9a-f]+: the row differs from what the events produce, in \w+(?:, \w+)*$/mu,
    scrub: /^The projection tasks is wrong at position \d+$/mu,
    reads: { cancelled: altered }
  },
  {
    name: "an item of a batch with the answer of another item",
    statements: ({ batch }) => [
      `UPDATE vatproof.tasks t SET closed_by = o.closed_by FROM vatproof.tasks o
        WHERE t.batch_id = '${batch}' AND o.batch_id = t.batch_id AND o.item = 1 - t.item`
    ],
    verify: /^\d+: tasks [-0-9a-f]+: the row differs from what the events produce, in \w+(?:, \w+)*$/mu,
    scrub: /^The projection tasks is wrong at position \d+$/mu,
    reads: { batch: altered }
  },
  {
    name: "rows removed from the search index",
    statements: () => ["DELETE FROM vatproof.event_index WHERE type = 'ApiKeyRevoked'"],
    verify: /^\d+: event_index \d+: the row is missing$/mu,
    scrub: /^The projection event_index is wrong at position \d+$/mu
  },
  {
    name: "a row of the search index with another type",
    statements: () => [
      "UPDATE vatproof.event_index SET type = 'ApiKeyRevoked' WHERE position = (SELECT min(position) FROM vatproof.event_index WHERE type = 'ApiKeyIssued')"
    ],
    verify: /^\d+: event_index \d+: the row differs from what the events produce, in \w+(?:, \w+)*$/mu,
    scrub: /^The projection event_index is wrong at position \d+$/mu,
    reads: { search: altered }
  },
  {
    name: "an altered log with only the first checkpoint",
    statements: () => [
      "UPDATE vatproof.events SET units = 7 WHERE position > 0",
      "DELETE FROM vatproof.checkpoints WHERE size > 1",
      "UPDATE vatproof.tiles SET hashes = substr(hashes, 1, 32)"
    ],
    verify: /^\d+: meters [^:]+: the row differs from what the events produce, in used$/mu,
    scrub: /^The projection meters is wrong at position \d+$/mu,
    start: /The only checkpoint in the database is that of the new log/u
  }
]

const assertNotice = (part: string, said: string, expected: RegExp | null) =>
  expected === null ? assert.strictEqual(said, "", part) : assert.match(said, expected, part)

layer(AttackedService.layer, { excludeTestServices: true, timeout: "2 minutes" })("An attack on the stored evidence", (it) => {
  it.effect.each(attacks.map((attack) => [attack.name, attack] as const))("is noticed: %s", function* ([_, attack]) {
    const { ids } = yield* AttackedService.AttackedService
    const said = yield* AttackedService.examine(attack.statements(ids))
    assertNotice("audit verify", said.verify, attack.verify)
    assertNotice("audit verify --fast", said.fast, attack.fast === undefined ? attack.verify : attack.fast)
    assertNotice("the scrubber", said.scrub, attack.scrub)
    assertNotice("the start", said.start, attack.start ?? null)
    const served = Object.fromEntries(AttackedService.reads.map((read) => [read, "served"]))
    assert.deepStrictEqual(said.reads, { ...served, ...attack.reads })
  })

  it.effect("is noticed: every change of the schema, by its object", function* () {
    const said = yield* AttackedService.examine(schemaAttacks.map(({ statement }) => statement))
    for (const { found, name } of schemaAttacks) {
      const line = (before: string) => new RegExp(`^${before}${found.source}$`, "mu")
      assert.match(said.verify, line("-: schema "), `audit verify: ${name}`)
      assert.match(said.fast, line("-: schema "), `audit verify --fast: ${name}`)
      assert.match(said.scrub, line("The schema "), `the scrubber: ${name}`)
      assert.match(said.start, line("The schema differs from this version's, .*: "), `the start: ${name}`)
    }
  })
})
