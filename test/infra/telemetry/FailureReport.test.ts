import { Cause, Effect, Schema } from "effect"
import { HttpClientError, HttpClientRequest } from "effect/http"
import { ConnectionError, SqlError, UniqueViolation, UnknownError } from "effect/sql/SqlError"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import * as FailureReport from "#infra/telemetry/FailureReport.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const postgresError = (code: string, message: string, more: object = {}) => Object.assign(new Error(message), { code, ...more })

const reportOf = (error: unknown) => FailureReport.make(Cause.fail(error))[0]

describe("the report of a failure", () => {
  it("contains the message of a Postgres error about the server, such as a full disk", () => {
    const cause = postgresError("53100", 'could not extend file "base/1/2": No space left on device')
    const report = reportOf(new SqlError({ reason: new UnknownError({ cause, message: "m", operation: "execute" }) }))
    assert.strictEqual(report?.type, "SqlError.UnknownError")
    assert.strictEqual(report?.message, '53100 could not extend file "base/1/2": No space left on device')
  })

  it("contains Node's error code for a connection that failed", () => {
    const cause = postgresError("ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:5432")
    const report = reportOf(
      new StoreUnavailable({
        cause: new SqlError({ reason: new ConnectionError({ cause, message: "m", operation: "connect" }) })
      })
    )
    assert.strictEqual(report?.type, "StoreUnavailable")
    assert.strictEqual(report?.cause?.message, "ECONNREFUSED connect ECONNREFUSED 127.0.0.1:5432")
  })

  it("omits data that a database error quotes", () => {
    const detail = { constraint: "contacts_email_key", detail: "Key (email_key)=(max@example.com) already exists." }
    const violation = new UniqueViolation({
      cause: postgresError("23505", "duplicate max@example.com", detail),
      message: "m",
      operation: "e",
      constraint: "contacts_email_key"
    })
    const raised = new UnknownError({
      cause: postgresError("22P02", 'invalid input syntax for type uuid: "Max Muster"'),
      message: "Max Muster",
      operation: "e"
    })
    assert.strictEqual(reportOf(new SqlError({ reason: violation }))?.message, "23505 contacts_email_key")
    assert.strictEqual(reportOf(new SqlError({ reason: raised }))?.message, "22P02")
    assert.notInclude(JSON.stringify(FailureReport.make(Cause.die(new SqlError({ reason: raised })))), "Muster")
  })

  it.effect("contains the path of the field that caused a decoding error, but not the field's value", function* () {
    const error = yield* Effect.flip(Schema.decodeUnknownEffect(Schema.Struct({ name: Schema.Int }))({ name: "Max Muster" }))
    assert.strictEqual(reportOf(error)?.message, "Decoding failed at: name")
  })

  it("contains the method of a failed HTTP request to another service, but not its URL", () => {
    const request = HttpClientRequest.get("https://ec.europa.eu/vies/ms/DE/vat/123456789")
    const error = new HttpClientError.HttpClientError({
      reason: new HttpClientError.TransportError({ request, cause: new Error("reset") })
    })
    const report = reportOf(error)
    assert.strictEqual(report?.type, "HttpClientError.TransportError")
    assert.notInclude(JSON.stringify(report), "123456789")
  })

  it("contains the stack frames, but not the message above them", () => {
    const report = reportOf(new TypeError("of\nMax Muster"))
    assert.match(report?.stack ?? "", /^at /u)
    assert.notInclude(report?.stack ?? "", "Muster")
  })

  it("has a limited size for any value, and omits interruptions", () => {
    const circular = new Error("again")
    circular.cause = circular
    assert.isBelow(JSON.stringify(reportOf(circular)).length, 20_000)
    assert.deepStrictEqual(FailureReport.make(Cause.interrupt(1)), [])
    assert.strictEqual(reportOf("just text")?.message, "just text")
  })
})
