import { assert, describe, it } from "@effect/vitest"
import { record, table } from "#app/commands/Table.ts"

interface Row {
  readonly name: string | null
  readonly count: number
}

const columns = [
  { heading: "NAME", cell: ({ name }: Row) => name },
  { heading: "COUNT", cell: ({ count }: Row) => count }
]

describe("a printed table", () => {
  it("aligns text on the left and numbers on the right", () => {
    const rows = [
      { name: "a", count: 5 },
      { name: "a longer name", count: 12_000 }
    ]
    assert.strictEqual(table(columns, rows), ["NAME           COUNT", "a                  5", "a longer name  12000"].join("\n"))
  })

  it("shows missing values as dashes, and a table without rows as headings only", () => {
    assert.strictEqual(table(columns, [{ name: null, count: 1 }]), ["NAME  COUNT", "-         1"].join("\n"))
    assert.strictEqual(table(columns, []), "NAME  COUNT")
  })

  it("replaces control characters in cells, to prevent terminal escape injection", () => {
    assert.strictEqual(table(columns, [{ name: "\u001b[2Jx\n", count: 1 }]).split("\n")[1], "?[2Jx?      1")
  })
})

describe("a printed record", () => {
  it("shows each label with its value in a second column, and a missing value as a dash", () => {
    assert.strictEqual(
      record([
        ["plan", "free"],
        ["email", null]
      ]),
      "plan   free\nemail  -"
    )
  })
})
