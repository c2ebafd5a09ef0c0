import { assert, describe, it } from "@effect/vitest"
import * as StatementName from "#infra/telemetry/StatementName.ts"

const operation = (name: string) => ["db.operation.name", name] as const
const collection = (name: string) => ["db.collection.name", name] as const
const procedure = (name: string) => ["db.stored_procedure.name", name] as const

describe("the name of a SQL statement in traces", () => {
  it.each([
    ["SELECT key, answer FROM vatproof.latest WHERE key = $1", "SELECT latest", [operation("SELECT"), collection("latest")]],
    ["SELECT head FROM vatproof.append($1, $2)", "append", [operation("SELECT"), procedure("append")]],
    ["SELECT vatproof.claim_notary($1)", "claim_notary", [operation("SELECT"), procedure("claim_notary")]],
    [
      "\n  INSERT INTO vatproof.accounts (a) SELECT a FROM vatproof.keys",
      "INSERT accounts",
      [operation("INSERT"), collection("accounts")]
    ],
    ["delete from vatproof.outbox", "DELETE outbox", [operation("DELETE"), collection("outbox")]],
    ["WITH one AS (UPDATE vatproof.outbox SET a = 1) SELECT 1", "UPDATE outbox", [operation("UPDATE"), collection("outbox")]],
    ["SELECT extract(epoch FROM now()) FROM vatproof.logs", "SELECT logs", [operation("SELECT"), collection("logs")]],
    ["BEGIN", "BEGIN", [operation("BEGIN")]]
  ])('for "%s" is "%s"', (statement, name, attributes) => {
    assert.deepStrictEqual(StatementName.make(statement), { name, attributes })
  })
})
