/** Checks the error bodies of the service (rule 44). */
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { FieldError, PlanDetails, statusOf, type ErrorCode } from "#http/pipeline/Errors.ts"
import type { Reply } from "#test/support/ServiceClient.ts"

const isBody = Schema.is(
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.String,
      message: Schema.NonEmptyString,
      request_id: Schema.String,
      details: Schema.optionalKey(Schema.Union([Schema.Array(FieldError), Schema.toEncoded(PlanDetails)]))
    })
  })
)

const isFields = Schema.is(Schema.Array(FieldError))
const isPlan = Schema.is(Schema.toEncoded(PlanDetails))

/**
 * Asserts that the reply is this error and well formed. Returns its message, the invalid fields as `details`, or the plan's limits as
 * `plan`.
 */
export const assertProblem = (reply: Reply, code: ErrorCode) => {
  const { body, headers, status, text } = reply
  assert.strictEqual(status, statusOf(code), text)
  if (!isBody(body)) return assert.fail(`This is no error body: ${text}`)
  assert.strictEqual(body.error.code, code, text)
  assert.strictEqual(headers["content-type"], "application/json")
  assert.strictEqual(headers["x-request-id"], body.error.request_id)
  assert.notMatch(body.error.message, /\bat .*:\d+:\d+|node_modules|vatproof\.|SqlError|undefined|\[object/u)
  const { details, ...error } = body.error
  return { ...error, details: isFields(details) ? details : undefined, plan: isPlan(details) ? details : undefined }
}
