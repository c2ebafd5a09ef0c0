/**
 * Compares the whole schema of a database with the schema that the files of `migrations/` create. Both are texts: `schema.sql` describes
 * the database, and `schema.txt` is its result after all migrations. So nothing in the database says what the schema should be.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"

/** An object of the database that differs from the schema of this program, with what differs. */
export interface SchemaDifference {
  readonly object: string
  readonly message: string
}

/** The lines of each object by its kind and name. */
type Description = ReadonlyMap<string, ReadonlyArray<string>>

const parse = (text: string): Description =>
  new Map(Array.from(text.trim().split("\n\n"), (paragraph) => [paragraph.split("\n", 1).join(), paragraph.split("\n").slice(1)]))

const partition = /^partition vatproof\.events_p(\d+)$/u

/** Returns the description of the partition with this number. All partitions have the form of the first one. */
const partitionAt = (first: ReadonlyArray<string>, number: number) => {
  const size = Number(/TO \('(\d+)'\)/u.exec(first.join())?.[1])
  return first.map((line) =>
    line
      .replaceAll("events_p0", `events_p${number}`)
      .replace(/FROM \(.*?\) TO \(.*?\)/u, `FROM ('${number * size}') TO ('${(number + 1) * size}')`)
  )
}

/**
 * Returns what the migrations create in an installation like the found one. A migrating role that is no superuser may be unable to
 * create roles and event triggers, and then remains the owner of everything. The start of the service warns of this.
 */
const expectedIn = (found: Description, all: Description) => {
  const isManaged = !(found.get("role administrator") ?? []).includes("  SUPERUSER")
  const isOwner = isManaged && (found.get("schema vatproof") ?? []).includes("  owner: administrator")
  const partitions = [...found.keys()].flatMap((object) => {
    const number = partition.exec(object)?.[1]
    return number === undefined
      ? []
      : [[object, partitionAt(all.get("partition vatproof.events_p0") ?? [], Number(number))] as const]
  })
  const mayLack = (object: string) => object.startsWith("role ") || (isManaged && object.startsWith("event trigger "))
  return new Map(
    [...all, ...partitions]
      .filter(([object]) => found.has(object) || !mayLack(object))
      .map(([object, lines]) => [
        object,
        lines
          .filter((line) => found.has(`role ${/^  grant to (vatproof_\w+):/u.exec(line)?.[1] ?? "administrator"}`))
          .map((line) => (isOwner ? line.replace(/^  owner: vatproof_owner$/u, "  owner: administrator") : line))
      ])
  )
}

/** Name of the object that has the name of the newest applied migration. */
export const migrations = "migrations"

const newestIn = (description: Description) => description.get(migrations)?.[0]?.trim() ?? ""

const compare = (found: Description, all: Description): ReadonlyArray<SchemaDifference> => {
  if (newestIn(found) > newestIn(all)) {
    const message = `a newer version of the program applied ${newestIn(found)}, so only that version can compare the schema`
    return [{ object: migrations, message }]
  }
  const expected = expectedIn(found, all)
  return [...new Set([...expected.keys(), ...found.keys()])].flatMap((object) => {
    const [should, is] = [expected.get(object), found.get(object)]
    if (object === "role administrator") return []
    if (is === undefined) return [{ object, message: "it is missing" }]
    if (should === undefined) return [{ object, message: ["no file of this program creates it", ...is].join("; ") }]
    const surplus = is.filter((line) => !should.includes(line)).map((line) => `it has "${line.trim()}"`)
    const missing = should.filter((line) => !is.includes(line)).map((line) => `it lacks "${line.trim()}"`)
    return surplus.length + missing.length === 0 ? [] : [{ object, message: [...surplus, ...missing].join("; ") }]
  })
}

const readFiles = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const read = (file: string) => fs.readFileString(path.join(import.meta.dirname, "../../../migrations", file))
  return { query: yield* read("schema.sql"), text: yield* read("schema.txt") }
})

const describe = Effect.fnUntraced(function* (query: string) {
  const sql = yield* SqlClient.SqlClient
  const Result = Schema.Struct({ line: Schema.String })
  const find = SqlSchema.findAll({ Request: Schema.Void, Result, execute: () => sql.unsafe(query).unprepared })
  // A trigger of logins could have changed the search path of the session, or created temporary tables, which are found first unless named last.
  const path = sql`SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`
  const lines = yield* sql.withTransaction(Effect.andThen(path, find(undefined)))
  return `${lines
    .map(({ line }) => line)
    .join("\n")
    .trim()}\n`
})

/** Reads the files, and returns the comparison. It needs no right in the database but to connect and to read the applied migrations. */
export const load = Effect.map(readFiles, ({ query, text }) =>
  Effect.map(describe(query), (found) => compare(parse(found), parse(text)))
)

/** Describes the schema of the database, as in `schema.txt`. */
export const description = Effect.flatMap(readFiles, ({ query }) => describe(query))
