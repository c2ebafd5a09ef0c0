import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as DatabaseAudit from "#events/audit/verify/DatabaseAudit.ts"
import { EventStore } from "#events/store/EventStore.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import { append, empty, root } from "#events/merkle/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/merkle/NoteKeys.ts"
import { leafHashes } from "#events/notary/StoredLeaf.ts"
import { TreeStore } from "#events/notary/TreeStore.ts"
import { logCrypto } from "#infra/security/NodeLogCrypto.ts"
import { signer } from "#test/support/Auditing.ts"
import { signerOf } from "#test/support/log/Keys.ts"
import * as Functions from "#test/support/Functions.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { tamper } from "#test/support/Tampering.ts"

const audit = (notes: ReadonlyArray<string> = [], verifiers: Verifiers = [signer], isFast = false) =>
  Effect.flatMap(Functions.bodies, (functions) =>
    DatabaseAudit.run({
      verifiers,
      kept: notes.map((note) => ({ note, at: "a file" })),
      functions,
      isFast,
      progress: () => Effect.void
    })
  )

const facts = (count: number): ReadonlyArray<SignedLog.Fact> =>
  Array.from({ length: count }, (_, index) => ({
    stream: `key-${index % 13}`,
    type: "VatIdVerified",
    data: { index, vat_id: "ATU12345678" },
    ...(index % 10 === 1 ? { personal: { company_name: "Muster GmbH" } } : {}),
    meter: `key-${index % 13}/2026-11`
  }))

const tables = ["events", "tiles", "checkpoints", "logs", "streams", "meters", "personal_documents"]

/** The log as it was, and back to it. */
const remember = Effect.forEach(tables, (table) =>
  MigratedDatabase.execute(`CREATE TABLE public.kept_${table} AS TABLE vatproof.${table}`)
)
const restore = tamper(
  ...tables.flatMap((table) => [`DELETE FROM vatproof.${table}`, `INSERT INTO vatproof.${table} TABLE public.kept_${table}`])
)

/** What is changed, and the positions that must be told for it; null stands for a finding about the whole log. */
const attacks: ReadonlyArray<
  readonly [name: string, statements: ReadonlyArray<string>, positions: ReadonlyArray<number | null>]
> = [
  ...(
    [
      ["stream_id", "'key-99'"],
      ["version", "4711"],
      ["event_id", "gen_random_uuid()"],
      ["type", "'VatIdVerificationFailed'"],
      ["schema_version", "2"],
      ["occurred_at", "occurred_at - interval '1 microsecond'"],
      ["recorded_at", "recorded_at + interval '1 microsecond'"],
      ["correlation_id", "gen_random_uuid()"],
      ["causation_id", "gen_random_uuid()"],
      ["trace_id", "'\\x00112233445566778899aabbccddeeff'"],
      ["meter_id", "NULL"],
      ["units", "0"],
      ["data", "data || ' '"],
      ["metadata", "'{}'"]
    ] as const
  ).map(
    ([column, value]) =>
      [`${column} changed`, [`UPDATE vatproof.events SET ${column} = ${value} WHERE position = 321`], [321]] as const
  ),
  ["a row moved to another log", ["UPDATE vatproof.events SET log_id = 1 WHERE position = 321"], [321]],
  ["a row removed", ["DELETE FROM vatproof.events WHERE position = 321"], [321]],
  [
    "two swapped",
    [
      "UPDATE vatproof.events SET position = -1 * position + 600000 WHERE position IN (100, 321)",
      "UPDATE vatproof.events SET position = CASE position WHEN 599900 THEN 321 ELSE 100 END WHERE position > 500000"
    ],
    [100, 321]
  ],
  ["the tail cut", ["DELETE FROM vatproof.events WHERE position >= 590"], [590]],
  [
    "the tail cut, and the log's own count with it",
    ["DELETE FROM vatproof.events WHERE position >= 590", "UPDATE vatproof.logs SET next_position = 590"],
    [590]
  ],
  [
    "an event and its leaf in the stored tree",
    [
      "UPDATE vatproof.events SET units = 0 WHERE position = 321",
      "UPDATE vatproof.tiles SET hashes = overlay(hashes placing sha256('x') from 65 * 32 + 1) WHERE level = 0 AND index = 1"
    ],
    [321]
  ],
  [
    "a leaf of the stored tree",
    ["UPDATE vatproof.tiles SET hashes = overlay(hashes placing sha256('x') from 65 * 32 + 1) WHERE level = 0 AND index = 1"],
    [321]
  ],
  ["an upper node", ["UPDATE vatproof.tiles SET hashes = overlay(hashes placing sha256('x') from 33) WHERE level = 1"], [null]],
  ["a tile removed", ["DELETE FROM vatproof.tiles WHERE level = 0 AND index = 1"], [256]],
  ["a checkpoint", ["UPDATE vatproof.checkpoints SET note = replace(note, E'\\n600\\n', E'\\n601\\n') WHERE size = 600"], [599]],
  ["a meter", ["UPDATE vatproof.meters SET used = used - 1 WHERE meter_id = 'key-3/2026-11'"], [603]],
  ["a stream", ["UPDATE vatproof.streams SET version = version + 1 WHERE stream_id = 'key-3'"], [603]],
  ["a time that never comes", ["UPDATE vatproof.events SET occurred_at = 'infinity' WHERE position = 321"], [321]],
  [
    "a hash too many in a tile",
    ["UPDATE vatproof.tiles SET hashes = hashes || sha256('x') WHERE level = 0 AND index = 2"],
    [null]
  ],
  ["a tile too many", ["INSERT INTO vatproof.tiles SELECT log_id, level, 3, hashes FROM vatproof.tiles WHERE level = 1"], [null]],
  ["only the log's own count changed", ["UPDATE vatproof.logs SET next_position = 590"], [590]],
  [
    "a second event at a place",
    [
      "ALTER TABLE vatproof.events DROP CONSTRAINT events_pkey CASCADE",
      "INSERT INTO vatproof.events SELECT log_id, position, 'key-other', 1, gen_random_uuid(), type, schema_version, occurred_at, recorded_at, correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM vatproof.events WHERE position = 321"
    ],
    [321]
  ],
  [
    "an event put at the end",
    [
      "INSERT INTO vatproof.events SELECT log_id, 700, stream_id, 5000, gen_random_uuid(), type, schema_version, occurred_at, recorded_at, correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM vatproof.events WHERE position = 0"
    ],
    [700]
  ],
  [
    "a personal document changed",
    ["UPDATE vatproof.personal_documents SET document = replace(document, 'Muster', 'Master') WHERE position = 321"],
    [321]
  ],
  ["a personal document removed", ["DELETE FROM vatproof.personal_documents WHERE position = 321"], [321]],
  [
    "a personal document made up",
    ["INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 320, '{}', now())"],
    [320]
  ],
  [
    "a personal document of no event",
    ["INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 900, '{}', now())"],
    [900]
  ]
]

const said = ({ findings }: DatabaseAudit.AuditReport) =>
  findings.map(({ message, position }) => `${position ?? "-"}: ${message}`).join("\n")

layer(SignedLog.layer, { excludeTestServices: true })("The audit of a database", (it) => {
  it.effect("finds nothing in a log that nobody touched", () =>
    Effect.gen(function* () {
      yield* SignedLog.appendAll(facts(250))
      yield* SignedLog.sign(250)
      yield* SignedLog.appendAll(facts(350))
      yield* SignedLog.sign(600)
      yield* SignedLog.appendAll(facts(5))
      const report = yield* audit()
      const signedBy = [formatVerifier(signer)]
      const documents = { kept: 61, erased: 0 }
      assert.deepStrictEqual(
        report,
        { events: 605, signed: 600, checkpoints: 3, signedBy, documents, findings: [], count: 0 },
        said(report)
      )
      yield* remember
    })
  )

  for (const [name, statements, positions] of attacks) {
    it.effect(`finds ${name}, and says where`, () =>
      Effect.gen(function* () {
        yield* tamper(...statements)
        const reports = [yield* audit(), yield* audit([], [signer], true)]
        yield* restore
        for (const report of reports) {
          const found = new Set(report.findings.map(({ position }) => position))
          for (const position of positions) assert.isTrue(found.has(position), `${position} in:\n${said(report)}`)
          assert.isAtMost(report.count, positions.length + 40, said(report))
        }
      })
    )
  }

  it.effect("finds a cut that leaves nothing behind, with a checkpoint that somebody kept", () =>
    Effect.gen(function* () {
      const { note } = yield* SignedLog.untilSigned(600)
      yield* tamper(
        "DELETE FROM vatproof.events WHERE position >= 300",
        "UPDATE vatproof.logs SET next_position = 300",
        "DELETE FROM vatproof.checkpoints WHERE size > 300"
      )
      const report = yield* audit([note])
      yield* restore
      assert.match(said(report), /^599: 600 events were signed \(a file\), but the database knows of 250 only$/mu)
      assert.match(said(report), /^300: the events up to position 599 are missing$/mu)
    })
  )

  it.effect("says where a change lies by what was kept, whatever is signed in the database", () =>
    Effect.gen(function* () {
      const tree = yield* TreeStore
      const kept = (yield* tree.checkpointsFrom(1, 2)).map(({ note }) => note)
      yield* tamper("UPDATE vatproof.events SET units = 0 WHERE position = 321", "DELETE FROM vatproof.checkpoints")
      const deleted = yield* audit(kept)
      const events = yield* (yield* EventStore).read(0, 400)
      const leaves = Result.getOrThrow(leafHashes(logCrypto, events, { from: 0, to: 400 }))
      const root400 = root(logCrypto.sha256, append(logCrypto.sha256, empty, leaves).tree)
      const forged = { origin: signer.name, size: 400, root: root400, extensions: [] }
      const note = Result.getOrThrow(Checkpoint.sign(forged, [signer]))
      yield* tamper(
        "DELETE FROM vatproof.tiles",
        `INSERT INTO vatproof.checkpoints (log_id, size, root, note) VALUES (0, 400, sha256('x'), '${note}')`
      )
      const resigned = yield* audit(kept)
      yield* restore
      assert.match(said(deleted), /^599: 600 events were signed \(a file\), but the database knows of 0 only$/mu)
      assert.match(said(deleted), /^321: the event is not the one that was signed$/mu)
      assert.match(
        said(resigned),
        /^599: .* signed with 600 events \(a file\): something was changed from position 250 to 599; from position 400 to 599, if/mu
      )
    })
  )

  it.effect("finds a history that was written anew and signed with another key", () =>
    Effect.gen(function* () {
      const report = yield* audit([], [signerOf(signer.name, "forger")])
      assert.match(said(report), /the checkpoint of 600 events is not valid: No known key has signed the note/u)
    })
  )

  it.effect("is not disturbed by a service that goes on", () =>
    Effect.gen(function* () {
      yield* restore
      const busy = Effect.forever(SignedLog.appendAll(facts(50)))
      const report = yield* Effect.raceFirst(Effect.repeat(audit(), { times: 5 }), busy)
      assert.deepStrictEqual(report.findings, [], said(report))
    })
  )
})
