import { assert, it } from "@effect/vitest"
import * as Findings from "#events/log/verify/Findings.ts"

it("come before those of a part that ran beside them, and all are counted", () => {
  const findings = Findings.make()
  const others = Findings.make()
  others.missing(7)
  for (let row = 0; row < 2_000; row += 1) others.addRow({ table: "meters", key: String(row), position: row }, "differs")
  findings.add(3, "altered")
  findings.missing(5)
  findings.addAll(others)
  assert.deepStrictEqual(
    findings
      .list()
      .slice(0, 4)
      .map(({ message, position }) => [position, message]),
    [
      [3, "altered"],
      [5, "the event is missing"],
      [7, "the event is missing"],
      [0, "meters 0: differs"]
    ]
  )
  assert.strictEqual(findings.list().length, 1_000)
  assert.strictEqual(findings.count(), 2_003)
})
