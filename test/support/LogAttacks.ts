/**
 * Makes a log of 605 events, of which 600 are signed. Lists the changes that a superuser can make, each with the finding that an
 * audit must report.
 */
import { Effect } from "effect"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { cached } from "#test/support/SourceAnswer.ts"
import { tamper } from "#test/support/Tampering.ts"

export const facts = (count: number): ReadonlyArray<SignedLog.Fact> =>
  Array.from({ length: count }, (_, index) => ({
    stream: `key-${index % 13}`,
    type: "VatIdVerified",
    data: { index, ...cached },
    ...(index % 10 === 1 ? { personal: { company_name: "Muster GmbH" } } : {}),
    meter: `key-${index % 13}/2026-11`
  }))

const tables = ["events", "tiles", "checkpoints", "logs", "streams", "meters", "personal_documents", "projections"]

/** Creates the log. */
const make = Effect.gen(function* () {
  yield* SignedLog.appendAll(facts(250))
  yield* SignedLog.sign(250)
  yield* SignedLog.appendAll(facts(350))
  yield* SignedLog.sign(600)
  yield* SignedLog.appendAll(facts(5))
})

const remember = Effect.forEach(tables, (table) =>
  MigratedDatabase.execute(`CREATE TABLE public.kept_${table} AS TABLE vatproof.${table}`)
)
export const made = Effect.andThen(make, remember)

/** Restores the original log. */
export const restore = tamper(
  "DROP FUNCTION IF EXISTS vatproof.stranger()",
  "DROP AGGREGATE IF EXISTS public.sum(int2)",
  "ALTER FUNCTION vatproof.meters_rows RESET search_path",
  ...tables.flatMap((table) => [`DELETE FROM vatproof.${table}`, `INSERT INTO vatproof.${table} TABLE public.kept_${table}`]),
  `IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'events_pkey') THEN
    ALTER TABLE vatproof.events ADD CONSTRAINT events_pkey PRIMARY KEY (log_id, position); END IF`
)

const moved = (table: string, columns: string, where: string) =>
  `UPDATE vatproof.${table} SET ${columns} WHERE log_id = 0 AND ${where}`

const stranger = "CREATE FUNCTION vatproof.stranger() RETURNS int LANGUAGE sql AS 'SELECT 1'"

/** The columns of an event, each with the SQL of a different value. */
const columnValues = Object.entries({
  stream_id: "'key-99'",
  version: "4711",
  event_id: "gen_random_uuid()",
  type: "'VatIdVerificationFailed'",
  schema_version: "2",
  occurred_at: "occurred_at - interval '1 microsecond'",
  recorded_at: "recorded_at + interval '1 microsecond'",
  correlation_id: "gen_random_uuid()",
  causation_id: "gen_random_uuid()",
  trace_id: "'\\x00112233445566778899aabbccddeeff'",
  meter_id: "NULL",
  units: "0",
  data: "data || ' '",
  metadata: "'{}'"
})

/**
 * Changes of the log, each with its finding. The whole sentence of the finding is compared, because another check may find the
 * same change by chance.
 */
export const attacks: ReadonlyArray<readonly [name: string, statements: ReadonlyArray<string>, finding: RegExp]> = [
  [
    "a changed value in each column of an event",
    columnValues.map(([column, value], index) => moved("events", `${column} = ${value}`, `position = ${300 + index}`)),
    new RegExp(columnValues.map((_, index) => `^${300 + index}: the event differs from the signed event$`).join("[^]*"), "mu")
  ],
  [
    "an event moved to another log",
    [moved("events", "log_id = 1", "position = 321")],
    /^321: there is an event of log 1, which does not exist$/mu
  ],
  ["a removed event", ["DELETE FROM vatproof.events WHERE position = 321"], /^321: the event is missing$/mu],
  [
    "two swapped events",
    [
      moved("events", "position = -1 * position + 600000", "position IN (100, 321)"),
      moved("events", "position = CASE position WHEN 599900 THEN 321 ELSE 100 END", "position > 500000")
    ],
    /^100: the event differs from the signed event\n321: the event differs/mu
  ],
  [
    "removed events at the end",
    ["DELETE FROM vatproof.events WHERE position >= 590"],
    /^590: the events from this position to 604 are missing$/mu
  ],
  [
    "removed events at the end with a matching number of events in the log's row",
    ["DELETE FROM vatproof.events WHERE position >= 590", moved("logs", "next_position = 590", "true")],
    /^590: the events from this position to 599 are missing$/mu
  ],
  [
    "a changed event with a changed leaf in the stored tree",
    [
      moved("events", "units = 0", "position = 321"),
      moved("tiles", "hashes = overlay(hashes placing sha256('x') from 65 * 32 + 1)", "level = 0 AND index = 1")
    ],
    /^321: the event and its hash in the stored tree differ, and neither matches the signature$/mu
  ],
  [
    "a changed event that an older checkpoint also covers, with a changed leaf in the stored tree",
    [
      moved("events", "units = 0", "position = 100"),
      moved("tiles", "hashes = overlay(hashes placing sha256('x') from 100 * 32 + 1)", "level = 0 AND index = 0")
    ],
    /^-: 2 signed checkpoints in total contradict the log$/mu
  ],
  [
    "a changed leaf in the stored tree",
    [moved("tiles", "hashes = overlay(hashes placing sha256('x') from 65 * 32 + 1)", "level = 0 AND index = 1")],
    /^321: the stored tree has a wrong hash for this event; the event itself is unchanged$/mu
  ],
  [
    "a changed hash in an upper tile",
    [moved("tiles", "hashes = overlay(hashes placing sha256('x') from 33)", "level = 1")],
    /^-: the stored tree is wrong in tile 1\/0$/mu
  ],
  [
    "a removed tile",
    ["DELETE FROM vatproof.tiles WHERE level = 0 AND index = 1"],
    /^256: the stored tree has no hash for this event$/mu
  ],
  [
    "a tile moved to another index",
    [moved("tiles", "index = 7", "level = 0 AND index = 1")],
    /^-: .* more hashes in tile 0\/7 than were signed$/mu
  ],
  [
    "a tile moved to another level",
    [moved("tiles", "level = 7", "level = 1")],
    /^-: .* more hashes in tile 7\/0 than were signed$/mu
  ],
  [
    "a tile moved to another log",
    [moved("tiles", "log_id = 1", "level = 1")],
    /^-: there is a tile of log 1, which does not exist$/mu
  ],
  [
    "a changed size in a checkpoint",
    [moved("checkpoints", "note = replace(note, E'\\n600\\n', E'\\n601\\n')", "size = 600")],
    /^599: the checkpoint of 600 events is not valid: /mu
  ],
  [
    "a checkpoint moved to another size",
    [moved("checkpoints", "size = 251", "size = 250")],
    /^250: the checkpoint stored for 251 events states 250 events$/mu
  ],
  [
    "the removal of all checkpoints",
    ["DELETE FROM vatproof.checkpoints"],
    /^-: the log was never signed: nothing proves its content$/mu
  ],
  [
    "a checkpoint moved to another log",
    [moved("checkpoints", "log_id = 1", "size = 250")],
    /^-: there is a checkpoint of log 1, which does not exist$/mu
  ],
  [
    "a changed meter",
    [moved("meters", "used = used - 1", "meter_id = 'key-3/2026-11'")],
    /^603: meters key-3\/2026-11: the row differs/mu
  ],
  [
    "a changed version of a stream",
    [moved("streams", "version = version + 1", "stream_id = 'key-3'")],
    /^603: streams key-3: the row differs/mu
  ],
  [
    "a removed row of a projection",
    ["DELETE FROM vatproof.meters WHERE meter_id = 'key-3/2026-11'"],
    /^603: meters key-3\/2026-11: the row is missing$/mu
  ],
  [
    "a surplus row of a projection",
    ["INSERT INTO vatproof.streams VALUES (0, 'key-99', 1, 5, 5)"],
    /^5: streams key-99: no event produces this row$/mu
  ],
  [
    "a projection of an unknown version",
    [moved("projections", "version = 7", "name = 'meters'")],
    /^-: projections meters: the projection has the version 7, which this version of the program does not know$/mu
  ],
  ["a surplus SQL function", [stranger], /^-: schema function vatproof\.stranger\(\): no file of this program creates it; /mu],
  [
    "a wrong sum of a meter, hidden by an aggregate that an SQL function finds first",
    [
      "CREATE AGGREGATE public.sum(int2) (sfunc = int82pl, stype = bigint, initcond = '-1')",
      "ALTER FUNCTION vatproof.meters_rows SET search_path = public, pg_catalog",
      "UPDATE vatproof.meters SET used = used - 1"
    ],
    /^-: schema function vatproof\.meters_rows\(.*\): it has ".* SET search_path=public, pg_catalog"; it lacks ".*"$/mu
  ],
  [
    "an infinite time",
    [moved("events", "occurred_at = 'infinity'", "position = 321")],
    /^321: The event at position 321 has a malformed occurred_at$/mu
  ],
  [
    "a surplus hash in a tile",
    [moved("tiles", "hashes = hashes || sha256('x')", "level = 0 AND index = 2")],
    /^-: the stored tree has more hashes in tile 0\/2 than were signed$/mu
  ],
  [
    "a surplus tile",
    ["INSERT INTO vatproof.tiles SELECT log_id, level, 3, hashes FROM vatproof.tiles WHERE level = 1"],
    /^-: the stored tree has more hashes in tile 1\/3 than were signed$/mu
  ],
  [
    "a changed number of events in the log's row",
    [moved("logs", "next_position = 590", "true")],
    /^590: according to the table logs the log ends at this position, but 600 events were signed$/mu
  ],
  [
    "an impossibly large number of events in the log's row",
    [moved("logs", "next_position = 9000000000000000", "true")],
    /^605: the events from this position to 6143 are missing\n6144: the verification ends at this position, .* should have 9000000000000000 events$/mu
  ],
  [
    "a checkpoint with an impossibly large number of events",
    ["INSERT INTO vatproof.checkpoints SELECT log_id, 9000000000000000, note FROM vatproof.checkpoints WHERE size = 600"],
    /^8999999999999999: the checkpoint stored for 9000000000000000 events states 600 events$/mu
  ],
  [
    "the removal of the log's row",
    ["DELETE FROM vatproof.logs"],
    /^605: logs 0: the row differs from what the events produce$/mu
  ],
  [
    "a second event at the same position",
    [
      "ALTER TABLE vatproof.events DROP CONSTRAINT events_pkey CASCADE",
      "INSERT INTO vatproof.events SELECT log_id, position, 'key-other', 1, gen_random_uuid(), type, schema_version, occurred_at, recorded_at, correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM vatproof.events WHERE position = 321"
    ],
    /^321: there is more than one event at this position, or the events are out of order$/mu
  ],
  [
    "an event that was inserted beyond the end of the log",
    [
      "INSERT INTO vatproof.events SELECT log_id, 700, stream_id, 5000, gen_random_uuid(), type, schema_version, occurred_at, recorded_at, correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM vatproof.events WHERE position = 0"
    ],
    /^700: there is an event outside of the positions of the log$/mu
  ],
  [
    "a changed version of an unsigned event",
    [moved("events", "version = version + 5", "position = 603")],
    /^603: version \d+ of the stream key-3 follows version \d+$/mu
  ],
  [
    "an unsigned event that begins a stream with version 2",
    [moved("events", "stream_id = 'key-99', version = 2", "position = 603")],
    /^603: the stream key-99 begins with version 2$/mu
  ],
  [
    "a changed time of an unsigned event",
    [moved("events", "recorded_at = recorded_at - interval '1 day'", "position = 603")],
    /^603: the event was recorded at .*, before the event at the preceding position$/mu
  ],
  [
    "a changed personal document",
    ["UPDATE vatproof.personal_documents SET document = replace(document, 'Muster', 'Master') WHERE position = 321"],
    /^321: the personal document does not match the digest in its event$/mu
  ],
  [
    "a removed personal document",
    ["DELETE FROM vatproof.personal_documents WHERE position = 321"],
    /^321: the personal document is missing$/mu
  ],
  [
    "an erasure of a personal document that no event records",
    ["UPDATE vatproof.personal_documents SET document = NULL WHERE position = 321"],
    /^321: the personal document is erased, but no event records the erasure$/mu
  ],
  [
    "a legal hold by an event that does not exist",
    ["UPDATE vatproof.personal_documents SET is_held = true, changed_by = 1000000 WHERE position = 321"],
    /^321: the personal document was changed by event 1000000, which does not exist$/mu
  ],
  [
    "a legal hold that no event records",
    ["UPDATE vatproof.personal_documents SET is_held = true WHERE position = 321"],
    /^321: the legal hold on the personal document contradicts the events$/mu
  ],
  [
    "a changed end of the retention period",
    ["UPDATE vatproof.personal_documents SET retain_until = retain_until + interval '1 day' WHERE position = 321"],
    /^321: the personal document is kept until .*, but the event says .*$/mu
  ],
  [
    "a personal document whose row names another event as its last change",
    ["UPDATE vatproof.personal_documents SET changed_by = position + 1 WHERE position = 321"],
    /^321: the row of the personal document names the wrong event for its last change$/mu
  ],
  [
    "an inserted personal document",
    ["INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 320, '{}', now())"],
    /^320: there is a personal document, but the event has no digest of one$/mu
  ],
  [
    "a personal document without an event",
    ["INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until) VALUES (0, 900, '{}', now())"],
    /^900: there is a personal document outside of the positions of the log$/mu
  ],
  [
    "a personal document moved to another log",
    ["UPDATE vatproof.personal_documents SET log_id = 1 WHERE position = 321"],
    /^321: there is a personal document of log 1, which does not exist$/mu
  ]
]
