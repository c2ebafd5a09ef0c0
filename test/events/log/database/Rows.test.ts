import { assert, it } from "@effect/vitest"
import { columnsFor } from "#events/log/database/Rows.ts"

it("names a column of each field in snake_case", () => {
  assert.strictEqual(columnsFor({ taskId: 1, isProbe: 1, plan: 1 }), 'task_id AS "taskId", is_probe AS "isProbe", plan AS "plan"')
})
