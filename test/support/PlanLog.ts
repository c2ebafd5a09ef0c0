/** Reads the query plans of a service's statements, which auto_explain writes into the log of Postgres. */
import { Effect, FileSystem, Schema } from "effect"

/** A node of a query plan. Its numbers of rows are averages per loop. */
export interface PlanNode {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Join Filter"?: number
  readonly "Rows Removed by Index Recheck"?: number
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<PlanNode>
}

const PlanNode: Schema.Codec<PlanNode> = Schema.Struct({
  "Node Type": Schema.String,
  "Relation Name": Schema.optionalKey(Schema.String),
  "Index Name": Schema.optionalKey(Schema.String),
  "Actual Rows": Schema.Number,
  "Actual Loops": Schema.Number,
  "Rows Removed by Filter": Schema.optionalKey(Schema.Number),
  "Rows Removed by Join Filter": Schema.optionalKey(Schema.Number),
  "Rows Removed by Index Recheck": Schema.optionalKey(Schema.Number),
  "Shared Hit Blocks": Schema.Number,
  "Shared Read Blocks": Schema.Number,
  Plans: Schema.optionalKey(Schema.Array(Schema.suspend(() => PlanNode)))
})

const Explained = Schema.Struct({ "Query Text": Schema.String, Plan: PlanNode })
const decodeExplained = Schema.decodeUnknownEffect(Schema.fromJsonString(Explained))

/** An executed statement and its plan. A statement inside an SQL function has an entry of its own. */
export interface Explained {
  readonly query: string
  readonly plan: PlanNode
}

/** Settings of a server that can explain statements, those of functions included. */
export const settings = [
  "session_preload_libraries=auto_explain",
  "auto_explain.log_analyze=on",
  "auto_explain.log_buffers=on",
  "auto_explain.log_timing=off",
  "auto_explain.log_nested_statements=on",
  "auto_explain.log_format=json",
  "log_line_prefix=%a|"
]
/** Options of a session whose statements are explained. */
export const sessionOptions = "-c auto_explain.log_min_duration=0"

/** Matches a log entry with a plan of the service's connections, whose application name is `vatproof`. */
const entry = /^vatproof\|LOG: {2}duration: \S+ ms {2}plan:\n(?<json>(?:\t.*\n)+)/gmu

/** Returns the plans logged after the first `from` bytes, and the current length of the log in bytes. */
export const read = Effect.fnUntraced(function* (file: string, from: number) {
  const fs = yield* FileSystem.FileSystem
  const bytes = yield* fs.readFile(file)
  const text = new TextDecoder().decode(bytes.subarray(from))
  const explained = yield* Effect.forEach(text.matchAll(entry), ({ groups }) =>
    Effect.map(decodeExplained(groups?.["json"]), ({ Plan: plan, "Query Text": query }): Explained => ({
      query: query.replace(/\s+/gu, " ").trim(),
      plan
    }))
  )
  return { length: bytes.length, explained }
})
