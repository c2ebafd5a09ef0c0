import { Effect, Option, Redacted, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { leafHash } from "#events/log/merkle/MerkleTree.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { parse as parseProof, verify as verifyProof } from "#events/log/merkle/Proof.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import { hashesIn } from "#events/log/merkle/Tiles.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { checkpointOf, layerSigned, newAuditor, signing, temporaryFolder, tileOf } from "#test/support/Auditing.ts"
import { assert, layer } from "#test/support/Test.ts"
import { log, logName, secretOf, signer } from "#test/support/log/Keys.ts"
import { businessCaller, type Events, eventsIn, typesOf } from "#test/support/AuditedCaller.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { whileLocked } from "#test/support/Outages.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as Rows from "#test/support/Rows.ts"

layer(layerSigned(), { excludeTestServices: true })("The audit API", (it) => {
  it.effect("returns the events that match an auditor's filter, page by page", function* () {
    const { get } = yield* RunningService.RunningService
    const one = yield* businessCaller
    yield* businessCaller
    const { headers } = yield* newAuditor()
    const read = (query: Readonly<Record<string, string>>) =>
      Effect.flatMap(get("/v1/audit/events", { headers, query }), ({ body }) => eventsIn(body))

    const ofAccount = yield* read({ account_id: one.accountId })
    assert.deepStrictEqual(typesOf(ofAccount), ["AccountRegistered", "ApiKeyIssued", "VatIdVerified", "ReceiptIssued"])
    assert.strictEqual(ofAccount.next_cursor, null)
    assert.deepStrictEqual(typesOf(yield* read({ receipt_id: one.receiptId })), ["ReceiptIssued"])
    assert.deepStrictEqual(typesOf(yield* read({ vat_id: "AT U12345678", type: "VatIdVerified", limit: "1" })), ["VatIdVerified"])
    assert.deepStrictEqual(typesOf(yield* read({ from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" })), [])
    assert.deepStrictEqual(typesOf(yield* read({ from: "2999-01-01T00:00:00Z" })), [])

    const pages: Array<number> = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const page: typeof Events.Type = yield* read({ type: "ApiKeyIssued", limit: "1", ...(cursor === "" ? {} : { cursor }) })
      pages.push(...page.data.map(({ position }) => position))
      cursor = page.next_cursor
    }
    assert.deepStrictEqual(pages.length, new Set(pages).size)
    assert.isAtLeast(pages.length, 2)
  })

  it.effect(
    "streams all events as lines in the order of their positions, and returns tiles of the Merkle tree that HTTP caches may store",
    function* () {
      const service = yield* RunningService.RunningService
      yield* businessCaller
      const { headers } = yield* newAuditor()
      const reply = yield* service.get("/v1/audit/events", { headers: { ...headers, accept: "application/x-ndjson" } })
      assert.strictEqual(reply.headers["content-type"], "application/x-ndjson")
      const events = reply.text
        .trimEnd()
        .split("\n")
        .map((line) => Result.getOrThrow(EventLine.parse(line)))
      assert.deepStrictEqual(
        events.map(({ position }) => position),
        events.map((_, index) => index)
      )
      yield* checkpointOf(service, events.length)
      const tile = yield* service.ask(`/v1/audit/tile/0/000.p/${events.length}`)
      assert.strictEqual(tile.status, 200, tile.text)
      assert.strictEqual(tile.headers["cache-control"], "public, max-age=31536000, immutable")
    }
  )

  it.effect(
    "records one event for each search, however many pages the auditor reads; the event does not contain the searched VAT ID",
    function* () {
      const { get } = yield* RunningService.RunningService
      yield* businessCaller
      const { auditorId, headers } = yield* newAuditor()
      const first = yield* eventsIn((yield* get("/v1/audit/events", { headers, query: { limit: "1" } })).body)
      const cursor = first.next_cursor ?? ""
      yield* get("/v1/audit/events", { headers, query: { limit: "1", cursor } })
      yield* get("/v1/audit/events", { headers, query: { vat_id: "ATU99999999" } })
      yield* get("/v1/audit/events/0", { headers })
      const recorded = yield* Rows.all(
        { type: Schema.String, data: Schema.String },
        (sql) => sql`SELECT type, data FROM vatproof.events WHERE stream_id = ${`auditor-${auditorId}`} ORDER BY version`
      )
      assert.deepStrictEqual(
        recorded.map(({ type }) => type),
        ["AuditorAdded", "AuditLogRead", "AuditLogRead", "AuditLogRead"]
      )
      assert.notInclude(recorded.map(({ data }) => data).join(), "99999999")
      const foreign = yield* newAuditor()
      assertProblem(
        yield* get("/v1/audit/events", { headers: foreign.headers, query: { limit: "1", cursor } }),
        "VALIDATION_ERROR"
      )
    }
  )

  it.effect("shows an auditor of one account only the events and proofs of that account", function* () {
    const { get } = yield* RunningService.RunningService
    const one = yield* businessCaller
    const other = yield* businessCaller
    const { headers } = yield* newAuditor(one.accountId)
    const all = yield* eventsIn((yield* get("/v1/audit/events", { headers })).body)
    // Adding the auditor and the auditor's reading of the log are events of the account too.
    assert.deepStrictEqual(typesOf(all), [
      "AccountRegistered",
      "ApiKeyIssued",
      "VatIdVerified",
      "ReceiptIssued",
      "AuditorAdded",
      "AuditLogRead"
    ])
    const none = yield* eventsIn((yield* get("/v1/audit/events", { headers, query: { account_id: other.accountId } })).body)
    assert.deepStrictEqual(none.data, [])
    assertProblem(yield* get("/v1/audit/events/0", { headers }), "NOT_FOUND")
    assertProblem(yield* get(`/v1/audit/proofs/${other.receiptId}`, { headers }), "NOT_FOUND")
    assert.strictEqual((yield* get(`/v1/audit/proofs/${one.receiptId}`, { headers })).status, 200)
  })

  it.effect("serves the proof of a receipt to its owner only, and the proof can be verified offline", function* () {
    const { get } = yield* RunningService.RunningService
    const { key, receiptId } = yield* businessCaller
    const reply = yield* get(`/v1/audit/proofs/${receiptId.toLowerCase()}`, { key })
    assert.match(reply.headers["x-service-usage"] ?? "", /^\d+\/\d+$/u)
    assert.strictEqual(reply.status, 200, reply.text)
    const leaf = Option.getOrThrow(Result.getOrThrow(parseProof(reply.text)).extra)
    const { index } = Result.getOrThrow(verifyProof(pureCrypto, reply.text, { ...log, leaf }))

    const bundle = yield* get(`/v1/audit/proofs/${receiptId}`, { key, headers: { accept: "application/json" } })
    const { event, position } = yield* Schema.decodeUnknownEffect(
      Schema.Struct({ position: Schema.Int, event: Schema.Struct({ data: Schema.Json }), verifier_key: Schema.String })
    )(bundle.body)
    assert.strictEqual(position, index)
    assert.include(JSON.stringify(event.data), receiptId)

    const { newKey } = yield* RunningService.RunningService
    assertProblem(yield* get(`/v1/audit/proofs/${receiptId}`, { key: yield* newKey }), "NOT_FOUND")
    assertProblem(yield* get(`/v1/audit/proofs/${position - 1}`, { key }), "NOT_FOUND")
    assertProblem(yield* get("/v1/audit/proofs/999999999", { key }), "NOT_FOUND")
    assertProblem(yield* get(`/v1/audit/proofs/${receiptId}`), "UNAUTHORIZED")
  })

  it.effect("serves the newest checkpoint and its tiles without authentication", function* () {
    const service = yield* RunningService.RunningService
    yield* businessCaller
    const { headers } = yield* newAuditor()
    const event = yield* service.get("/v1/audit/events/3", { headers })
    const leaf = Result.getOrThrow(leafOf(pureCrypto, Result.getOrThrow(EventLine.parse(event.text))))
    const { size } = yield* checkpointOf(service, 4)
    const note = yield* service.get("/v1/audit/checkpoint")
    assert.match(note.headers["content-type"] ?? "", /^text\/plain/u)
    assert.isAtLeast(Result.getOrThrow(Checkpoint.open(pureCrypto, note.text, log)).size, size)
    const tile = yield* tileOf(service, "0/000.p/4")
    assert.deepStrictEqual(hashesIn(tile)[3], leafHash(pureCrypto.sha256, leaf))
    for (const path of ["0/000", "0/001.p/1", "0/000.p/255", "entries/000.p/1", "0/0.p/1", "x", "0/000.p/0", "9/000.p/1"]) {
      assertProblem(yield* service.get(`/v1/audit/tile/${path}`), "NOT_FOUND")
    }
  })

  it.effect("rejects unsupported methods, and unknown or malformed filters", function* () {
    const { ask, get } = yield* RunningService.RunningService
    const { headers } = yield* newAuditor()
    for (const path of ["/v1/audit/events", "/v1/audit/tile/0/x001/000", "/v1/audit/proofs/1"]) {
      const reply = yield* ask(path, { method: "POST", headers })
      assertProblem(reply, "METHOD_NOT_ALLOWED")
      assert.strictEqual(reply.headers["allow"], "GET, HEAD")
    }
    const wrong: ReadonlyArray<Readonly<Record<string, string>>> = [
      { from: "yesterday" },
      { account_id: "1" },
      { limit: "0" },
      { limit: "1001" },
      { cursor: "x" },
      { type: "" },
      { type: "a\u0000" },
      { receipt_id: "\u0000" },
      { key: "svc_live_" },
      { type: "Nothing" },
      { vatid: "DE123456789" },
      { Type: "ReceiptIssued" },
      { from: "-271821-04-20T00:00:00.000Z" },
      { to: "+275760-09-13T00:00:00.000Z" }
    ]
    for (const query of wrong) assertProblem(yield* get("/v1/audit/events", { headers, query }), "VALIDATION_ERROR")
    const told = yield* get("/v1/audit/events", { headers, query: { company: "DE123456789", type: "Nothing" } })
    assert.match(
      told.text,
      /company: Unknown filter. Known filters: from, to, type, account_id, key, vat_id, receipt_id, limit, cursor/u
    )
    assert.match(told.text, /type: Unknown type. Known types: AccountClosed, .*VatIdVerified/u)
    assertProblem(yield* get("/v1/audit/events", { headers, query: { vat_id: "XX1" } }), "INVALID_VAT_ID")
    for (const subject of ["%00", "%22", "a%2Fb", "%0d%0a", "é", "x".repeat(200)]) {
      assertProblem(yield* get(`/v1/audit/proofs/${subject}`, { headers }), "NOT_FOUND")
      assertProblem(yield* get(`/v1/audit/tile/${subject}`), "NOT_FOUND")
    }
    assertProblem(yield* get("/v1/audit/events/-1", { headers }), "VALIDATION_ERROR")
    assertProblem(yield* get("/v1/audit/events/99999999", { headers }), "NOT_FOUND")
  })

  it.effect("returns with a proof the public key of its signature, even on a replica that signs with another key", function* () {
    const { key, receiptId } = yield* businessCaller
    const { get } = yield* RunningService.RunningService
    assert.strictEqual((yield* get(`/v1/audit/proofs/${receiptId}`, { key })).status, 200)
    const next = Redacted.value(secretOf(logName, "next"))
    const signed = formatVerifier(signer)
    const replica = yield* RunningService.start({ ...signing(yield* temporaryFolder), NOTARY_KEY: `${next} ${signed}` })
    const { body } = yield* replica.get(`/v1/audit/proofs/${receiptId}`, { key, headers: { accept: "application/json" } })
    const { verifier_key } = yield* Schema.decodeUnknownEffect(Schema.Struct({ verifier_key: Schema.String }))(body)
    assert.strictEqual(verifier_key, signed)
  })

  it.effect("answers 503 instead of 401 during a database outage", function* () {
    const service = yield* RunningService.RunningService
    const { headers } = yield* newAuditor()
    const paths = ["/v1/audit/events", "/v1/audit/proofs/0"]
    const asked = Effect.forEach(paths, (path) => service.get(path, { headers }), { concurrency: "unbounded" })
    const replies = yield* whileLocked(service, "auditors", asked)
    for (const reply of replies) {
      assertProblem(reply, "SERVICE_UNAVAILABLE")
      assert.notProperty(reply.headers, "www-authenticate")
    }
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("The audit API", (it) => {
  it.effect("accepts the cursor of the next page for one day, and rejects it after two days", function* () {
    const { get, travel } = yield* RunningService.make()
    const { headers } = yield* newAuditor()
    const query = { limit: "1" }
    const { next_cursor } = yield* eventsIn((yield* get("/v1/audit/events", { headers, query })).body)
    const next = { headers, query: { ...query, cursor: next_cursor ?? "" } }
    yield* travel("1 day")
    assert.strictEqual((yield* get("/v1/audit/events", next)).status, 200)
    yield* travel("1 day")
    assertProblem(yield* get("/v1/audit/events", next), "VALIDATION_ERROR")
  })

  it.effect("rejects malformed, revoked and expired tokens of auditors", function* () {
    const { get, travel } = yield* RunningService.make()
    const { auditorId, headers, token } = yield* newAuditor(null, 2)
    assert.strictEqual((yield* get("/v1/audit/events", { headers })).status, 200)
    const wrong = [undefined, "Bearer", `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}_`, token, "Bearer svc_audit_"]
    for (const authorization of wrong) {
      const reply = yield* get("/v1/audit/events", { headers: authorization === undefined ? {} : { authorization } })
      assertProblem(reply, "UNAUTHORIZED")
      assert.strictEqual(reply.headers["www-authenticate"], "Bearer")
    }
    yield* travel("1 day")
    assert.strictEqual((yield* get("/v1/audit/events", { headers })).status, 200)
    yield* travel("25 hours")
    assertProblem(yield* get("/v1/audit/events", { headers }), "UNAUTHORIZED")
    const other = yield* newAuditor()
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE vatproof.auditors SET revoked_at = now() WHERE auditor_id = ${other.auditorId}`
    assertProblem(yield* get("/v1/audit/events", { headers: other.headers }), "UNAUTHORIZED")
    assert.notStrictEqual(auditorId, other.auditorId)
  })
})
