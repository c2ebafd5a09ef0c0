import { assert, describe, it } from "@effect/vitest"
import { exportTables, rowOf } from "#events/audit/ExportTable.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

const issued = new StoredEvent({
  log_id: 0,
  position: 7,
  stream_id: "receipt-VP-QC-1",
  version: 1,
  event_id: "01a2072c-84e1-736d-b4f8-7231335ed2e9",
  type: "ReceiptIssued",
  schema_version: 1,
  occurred_at: "2026-11-23T06:51:27.841000Z",
  recorded_at: "2026-11-23T06:51:27.848917Z",
  correlation_id: "01a2072c-84b8-703f-b3ca-c332d4df04f2",
  causation_id: null,
  trace_id: null,
  meter_id: null,
  units: 1,
  data: "{}",
  metadata: "{}"
})

/** How a supplied name stands in the table of personal data. */
const cellOf = (name: string) => {
  const table = exportTables.find(({ file }) => file === "personal/personal.csv")
  const index = table?.columns.findIndex((column) => column.name === "input_name") ?? -1
  const personal = JSON.stringify({ input: { company_name: name } })
  return table === undefined ? "" : (rowOf(table, { event: issued, data: {}, personal })?.split(";")[index] ?? "")
}

describe("text in a table", () => {
  it("is never a formula to a spreadsheet", () => {
    for (const name of ["=1+1", "+49 30", "-GmbH", "@SUM(A1)", " =1", "\u00a0=1", "＝1", "＋1", "－1", "＠1"])
      assert.strictEqual(cellOf(name), `"'${name}"`)
    assert.strictEqual(cellOf("\tx"), `"' x"`)
    assert.strictEqual(cellOf("\r=1"), `"' =1"`)
    assert.strictEqual(cellOf("\u0000=1"), `"' =1"`)
  })

  it("is otherwise as it was sent, on one line", () => {
    for (const name of ["Müller & Co.", "A=B", "'s-Hertogenbosch", "3-D", ""]) assert.strictEqual(cellOf(name), `"${name}"`)
    assert.strictEqual(cellOf('A "B"\r\nC'), '"A ""B"" C"')
  })
})
