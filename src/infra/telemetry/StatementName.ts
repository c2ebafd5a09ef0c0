/**
 * The name of an SQL statement in spans, in place of its text: operation and target, by OpenTelemetry's conventions for databases
 * (https://opentelemetry.io/docs/specs/semconv/database/database-spans/, read 2026-11).
 */

/** `name` is the name of the span: `SELECT accounts`, or only the function's name if the statement calls a function. */
export interface StatementName {
  readonly name: string
  readonly attributes: ReadonlyArray<readonly [name: string, value: string]>
}

/** Maximum number of cached names. The service has some hundred statements; further statements are parsed each time. */
const maxRemembered = 1_000
const remembered = new Map<string, StatementName>()

export const make = (statement: string): StatementName => {
  const cached = remembered.get(statement)
  if (cached !== undefined) return cached
  const made = parse(statement)
  if (remembered.size < maxRemembered) remembered.set(statement, made)
  return made
}

const parse = (statement: string): StatementName => {
  const first = /^\s*(\w+)/u.exec(statement)?.[1]?.toUpperCase() ?? "SQL"
  const [, keyword = "", target, isCalled] = targetOf.exec(statement) ?? callOf.exec(statement) ?? []
  const operation = first === "WITH" ? (operations.get(keyword.toUpperCase()) ?? "SELECT") : first
  if (target === undefined) return { name: operation, attributes: [["db.operation.name", operation]] }
  const kind = isCalled === "(" ? "db.stored_procedure.name" : "db.collection.name"
  return {
    name: isCalled === "(" ? target : `${operation} ${target}`,
    attributes: [
      ["db.operation.name", operation],
      [kind, target]
    ]
  }
}

/** Matches the first target of a statement: a table, or a function if a parenthesis follows. */
const targetOf = /\b(FROM|INTO|UPDATE)\s+(?:ONLY\s+)?vatproof\.(\w+)(\()?/iu
/** Matches a function among the selected columns. */
const callOf = /()\bvatproof\.(\w+)(\()/u
const operations = new Map([
  ["INTO", "INSERT"],
  ["UPDATE", "UPDATE"]
])
