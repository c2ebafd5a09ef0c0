/** Checks query plans: a statement must not read many more rows of a growing table than it returns or changes. */
import type { Explained, PlanNode } from "#test/support/PlanLog.ts"

/** Limits of removed rows, read rows and buffers. The last two limits are `atLeast` + `perRow` × returned rows. */
const bounds = { removed: 30, read: { atLeast: 60, perRow: 3 }, buffers: { atLeast: 500, perRow: 25 } }

/** Tables that do not grow, system tables, and the empty partitions of the log that are created in advance. */
const small = /^(?:logs|notaries|projections|hash_key|pg_\w+|events_p[1-9]\d*)$/u

interface Exception {
  readonly statement: RegExp
  readonly why: string
  readonly readAtMost: number
}

/** Statements that may read more rows than they return, each with the reason. */
const exceptions: ReadonlyArray<Exception> = [
  {
    statement: /FROM vatproof\.tasks WHERE closed_by IS NULL ORDER BY expires_at LIMIT 100000/u,
    why: "a gauge counts the waiting validations every ten seconds",
    readAtMost: 2_000
  },
  {
    statement: /^SELECT count\(\*\) AS found.* FROM vatproof\.events WHERE log_id = \$1 AND position >= \$2 AND position < \$3$/u,
    why: "notary and projections count and hash the new events of an iteration",
    readAtMost: 5_000
  },
  {
    statement: /INSERT INTO vatproof\.source_hours .* FROM vatproof\.source_hours_rows\(/u,
    why: "the projection of the calls of sources reads the new events of an iteration, and nearly all of them name no call",
    readAtMost: 5_000
  },
  {
    statement:
      /FROM event_index WHERE log_id = p_log AND \(position >> 18\)::int = segment AND vat_id = p_vat_id|vatproof\.positions_of_vat_id\(/u,
    why: "an auditor's search for a VAT ID reads all entries of the VAT ID in a segment, because the index has no positions",
    readAtMost: 2_000
  },
  {
    statement: /AND type <> 'VatIdVerified' AND type::text \|\| '' = \$\d+\) ORDER BY (?:account|key)_id, position/u,
    why: "an auditor's search for one event type of an account or key reads its events of all types, because the index has no type",
    readAtMost: 4_000
  }
]

const total = (node: PlanNode, count: number | undefined) => Math.round((count ?? 0) * node["Actual Loops"])
const rowsOf = (node: PlanNode) => total(node, node["Actual Rows"])
const nodesOf = (node: PlanNode): ReadonlyArray<PlanNode> => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/** Returns whether a node reads a table. A function scan does not: the statements in the function are checked separately. */
const isOfTable = (node: PlanNode) => node["Relation Name"] !== undefined

/** Returns the number of rows that a statement returns or changes, whichever is larger. */
const givenBy = ([top, ...below]: ReadonlyArray<PlanNode>) => {
  const changed = [top, ...below].flatMap((node) =>
    node?.["Node Type"] === "ModifyTable" ? (node.Plans?.slice(0, 1) ?? []) : []
  )
  return Math.max(0, ...[...(top === undefined ? [] : [top]), ...changed].map(rowsOf))
}

const faultsOfNode = (node: PlanNode, readAtMost: number, removedAtMost: number): ReadonlyArray<string> => {
  const joined = total(node, node["Rows Removed by Join Filter"])
  const table = node["Relation Name"]
  const name = [node["Node Type"], table, node["Index Name"]].filter((part) => part !== undefined).join(" ")
  const faults = joined > bounds.removed ? [`${name} removes ${joined} rows`] : []
  if (table === undefined || small.test(table) || !node["Node Type"].endsWith("Scan")) return faults
  const removed = total(node, node["Rows Removed by Filter"]) + total(node, node["Rows Removed by Index Recheck"])
  return [
    ...faults,
    ...(node["Node Type"] === "Seq Scan" ? [`${name} of a table that grows`] : []),
    ...(removed > removedAtMost ? [`${name} removes ${removed} rows`] : []),
    ...(rowsOf(node) > readAtMost ? [`${name} reads ${rowsOf(node)} rows`] : [])
  ]
}

/** The description of the schema (migrations/schema.sql) reads only these tables, whose size depends on the schema. */
const schemaTables = /^(?:pg_\w+|vatproof_migrations)$/u
const readsSchemaOnly = (nodes: ReadonlyArray<PlanNode>) =>
  nodes.some(isOfTable) && nodes.every((node) => !isOfTable(node) || schemaTables.test(node["Relation Name"] ?? ""))

/** Returns the faults of a statement's plan, each with the statement. */
export const faultsOf = ({ plan, query }: Explained): ReadonlyArray<string> => {
  const nodes = nodesOf(plan)
  if (readsSchemaOnly(nodes)) return []
  const given = givenBy(nodes)
  const most = exceptions.find(({ statement }) => statement.test(query))?.readAtMost ?? 0
  const readAtMost = Math.max(most, bounds.read.atLeast + bounds.read.perRow * given)
  const buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
  const buffersAtMost = bounds.buffers.atLeast + bounds.buffers.perRow * Math.max(given, most)
  const faults = [
    ...nodes.flatMap((node) => faultsOfNode(node, readAtMost, Math.max(most, bounds.removed))),
    ...(nodes.some(isOfTable) && buffers > buffersAtMost ? [`reads ${buffers} buffers`] : [])
  ]
  return faults.map((fault) => `${fault}, for ${given} rows: ${query.slice(0, 400)}`)
}
