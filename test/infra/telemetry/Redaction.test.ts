import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"

const { text, value } = Redaction.make([Redacted.make("collector-secret"), Redacted.make("abc")])

/** One realistic VAT ID of every member state. */
const vatIds: ReadonlyArray<string> = [
  "ATU12345678",
  "BE0123456789",
  "BG123456789",
  "CY12345678X",
  "CZ12345678",
  "DE123456789",
  "DK12345678",
  "EE123456789",
  "EL123456789",
  "ESX1234567X",
  "FI12345678",
  "FRXX123456789",
  "HR12345678901",
  "HU12345678",
  "IE1234567WA",
  "IT12345678901",
  "LT123456789012",
  "LU12345678",
  "LV12345678901",
  "MT12345678",
  "NL123456789B01",
  "PL1234567890",
  "PT123456789",
  "RO1234567890",
  "SE123456789012",
  "SI12345678",
  "SK1234567890",
  "XI123456789"
]

describe("the redaction of logs", () => {
  it("recognises a VAT ID of every member state, in any usual spelling", () => {
    assert.strictEqual(vatIds.length, memberStates.size)
    for (const vatId of [...vatIds, "RO123456"]) {
      const spaced = `${vatId.slice(0, 2)} ${vatId.slice(2, 5)} ${vatId.slice(5)}`
      for (const typed of [vatId, vatId.toLowerCase(), spaced])
        assert.strictEqual(text(`of (${typed}) ,`), "of ([vat id]) ,", typed)
    }
  })

  it.each([
    ["svc_live_abcDEF0123456789", "[api key]"],
    ["svc_audit_abcDEF0123456789", "[auditor's token]"],
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[token]"],
    ["Authorization: Bearer abc.def-123", "Authorization: [redacted] [secret]"],
    ["postgresql://vatproof:p%40ss@db.example:5432/v", "postgresql://[secret]@db.example:5432/v"],
    ["to max.muster+x@example.co.uk failed", "to [email] failed"],
    ["from 203.0.113.7 and 2001:db8::1 and fe80::1ff:fe23:4567:890a", "from [ip] and [ip] and [ip]"],
    ["token 5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5", "token [hash]"],
    ["GET /v1/validate/whatever%20was?company_name=Some%20Firm", "GET /v1/validate/[redacted]"],
    ["GET /v1/receipts?target_vat_id=1&limit=5", "GET /v1/receipts?target_vat_id=[redacted]&limit=[redacted]"],
    ["GET /v1/qualified-confirmations/Some-Firm", "GET /v1/qualified-confirmations/[redacted]"],
    ["opened /v1/receipt-links/VP-QC-20261123-K9D3QD0DW3.01a2.tpo2ew.477f", "opened /v1/receipt-links/[redacted]"],
    [
      "POST https://ec.europa.eu/rest-api/ms/DE/vat/123456789 failed",
      "POST https://ec.europa.eu/rest-api/ms/DE/vat/[redacted] failed"
    ],
    ['{"password":"hunter2 hunter2"}', '{"password":"[redacted] hunter2"}'],
    ["the collector-secret of the settings", "the [secret] of the settings"]
  ])("replaces secrets and personal data in: %s", (told, expected) => assert.strictEqual(text(told), expected))

  it.each([
    "Vatproof listens on http://127.0.0.1:8080, docs: http://127.0.0.1:8080/docs",
    "Metrics, /livez and /readyz are on http://0.0.0.0:9464",
    "Applied 8 migrations: 0001_roles, 0002_log",
    "connect ECONNREFUSED ::1 at 12:34:56 after 12345678 ms",
    "Mail 01a1fbfe-a396-71df-af2c-2ec9cd11bc08 was not taken (ECONNREFUSED): attempt 2 follows in 2 s",
    "A request was answered with status 201: POST /v1/keys/rotate",
    "A request was refused with status 401: DELETE /v1/keys/self",
    "01a20bd9-a03b-7461-8a41-de1234567890 repeats the request 01a20bd9-a03b-7461-8a41-be0123456789",
    "A request failed with status 503: GET /v1/validate/{vat_id}",
    "at Foo (file:///srv/src/events/log/store/EventStore.ts:12:34)",
    "at Bar (file:///srv/node_modules/@effect/sql-pg/dist/PgConnection.js:1:2)",
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 is settled in 12345678 steps, see 9876543",
    "abc is too short to be a secret"
  ])("leaves %s unchanged", (told) => assert.strictEqual(text(told), told))

  it("replaces the values of sensitive fields at any depth, and keeps the other values", () => {
    assert.deepStrictEqual(
      value({
        source: "vies",
        count: 3,
        email: "x",
        deep: { vat_id: "1", list: ["a@b.example", Redacted.make("x")], requester_vat_id: "2", token: "t" },
        error: new Error("for DE123456789")
      }),
      {
        source: "vies",
        count: 3,
        email: "[redacted]",
        deep: { vat_id: "[redacted]", list: ["[email]", "[secret]"], requester_vat_id: "[redacted]", token: "[redacted]" },
        error: "Error: for [vat id]"
      }
    )
  })

  it("limits the length of texts, the depth of objects and the number of items", () => {
    assert.isBelow(text("x".repeat(1_000_000)).length, 5_000)
    const cyclic: Record<string, unknown> = {}
    cyclic["self"] = cyclic
    assert.isBelow(JSON.stringify(value(cyclic)).length, 200)
    assert.isBelow(JSON.stringify(value(Array.from({ length: 100_000 }, (_, index) => index))).length, 500)
  })
})
