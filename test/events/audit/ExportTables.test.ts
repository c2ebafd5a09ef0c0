import { assert, describe, it } from "@effect/vitest"
import { exportCatalogue } from "#events/audit/ExportTables.ts"
import { rowOf } from "#events/log/export/ExportTable.ts"
import { storedEvent } from "#test/support/log/Events.ts"

const issued = storedEvent({ type: "ReceiptIssued", stream_id: "receipt-VP-QC-1" })

/** Returns the cell of a company name in the table of personal data. */
const cellOf = (name: string) => {
  const table = exportCatalogue.tables.find(({ file }) => file === "personal/personal.csv")
  const index = table?.columns.findIndex((column) => column.name === "input_name") ?? -1
  const personal = JSON.stringify({ input: { company_name: name } })
  return table === undefined ? "" : (rowOf(table, { event: issued, data: {}, facts: null, personal })?.split(";")[index] ?? "")
}

/** Returns the row of an operator's event, without the columns for the position and the times. */
const rowIn = (name: string, type: string, data: object) => {
  const table = exportCatalogue.tables.find(({ file }) => file === name)
  const metadata = '{"actor":"carol","reason":"=order","request_id":"-","source":"cli"}'
  const event = storedEvent({ type, metadata, stream_id: issued.stream_id })
  return table && rowOf(table, { event, data, facts: null, personal: undefined })?.split(";").slice(3).join(";")
}

const accountId = "019371c0-5f00-7000-8000-0000000000ac"
const keyId = "019371c0-5f00-7000-8000-0000000000a1"

it("an export has tables of plans and keys, with the author and reason of each change", () => {
  assert.strictEqual(
    rowIn("plans.csv", "PlanChanged", { account_id: accountId, plan: "business", per_month: 3 }),
    `"changed";"${accountId}";"business";3;"cli";"carol";"'=order"`
  )
  assert.strictEqual(
    rowIn("keys.csv", "ApiKeyRevoked", { account_id: accountId, key_id: keyId, prefix: "svc_live_A7K", by: "operator" }),
    `"revoked";"${accountId}";"${keyId}";"svc_live_A7K";;"operator";"cli";"carol";"'=order"`
  )
})

describe("an exported table", () => {
  it("contains no text that a spreadsheet reads as a formula", () => {
    for (const name of ["=1+1", "+49 30", "-GmbH", "@SUM(A1)", " =1", "\u00a0=1", "＝1", "＋1", "－1", "＠1"])
      assert.strictEqual(cellOf(name), `"'${name}"`)
    assert.strictEqual(cellOf("\tx"), `"' x"`)
    assert.strictEqual(cellOf("\r=1"), `"' =1"`)
    assert.strictEqual(cellOf("\u0000=1"), `"' =1"`)
  })

  it("contains each text on one line, and otherwise changes only text that a spreadsheet would read as a formula", () => {
    for (const name of ["Müller & Co.", "A=B", "'s-Hertogenbosch", "3-D", ""]) assert.strictEqual(cellOf(name), `"${name}"`)
    assert.strictEqual(cellOf('A "B"\r\nC'), '"A ""B"" C"')
  })
})
