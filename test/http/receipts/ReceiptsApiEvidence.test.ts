import { DateTime, Effect, MutableRef, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { confirm, newPaidKey, receiptIdOf, receiptsPath as list } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

/** Returns a script that answers a confirmation by `script`, and each background probe before it by an empty list. */
const answering =
  (standIn: StandIn.StandIn["Service"], script: StandIn.Script): StandIn.Script =>
  (call) =>
    call.head.startsWith("POST ")
      ? script(call)
      : Effect.andThen(StandIn.answer(200, [])(call), standIn.next(answering(standIn, script)))

const Stored = Schema.fromJsonString(
  Schema.Struct({
    evidence: Schema.Struct({
      request: Schema.String,
      response: Schema.String,
      response_sha256: Schema.String,
      http_status: Schema.Int
    })
  })
)

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a receipt as evidence", (it) => {
  it.effect("contains the request to the BZSt and the response byte for byte", () =>
    Effect.gen(function* () {
      const standIn = yield* StandIn.StandIn
      const client = yield* RunningService.start({ BZST_BASE_URL: standIn.baseUrl })
      const key = yield* newPaidKey(client)
      const sent = MutableRef.make("")
      const time = `${DateTime.formatIso(yield* DateTime.now).slice(0, -1)}553064+00:00`
      const response = `\n{ "id":"a\\/b","anfrageZeitpunkt" : "${time}","ergFirmenname":"A","ergOrt":"B",\t"status":"evatr-0000","x":{"ä":[1.0e2,"\\u20ac 😀"]}}\r\n `
      yield* standIn.next(
        answering(standIn, (call) =>
          Effect.andThen(
            Effect.sync(() => MutableRef.set(sent, call.body)),
            StandIn.answer(200, response)(call)
          )
        )
      )
      const company = { company_name: 'Müller & Söhne "ΑΒΓ" \\ 😀', company_city: "Köln\u2028\u00AD" }
      const id = yield* Effect.flatMap(confirm(client, "DE811115368", key, company), receiptIdOf)
      const [stored] = yield* Rows.all(
        { document: Stored },
        (sql) => sql`SELECT document FROM vatproof.personal_documents JOIN vatproof.events USING (log_id, position)
          WHERE stream_id = ${`receipt-${id}`}`
      )
      assert.deepStrictEqual(stored?.document.evidence, {
        request: sent.current,
        response,
        response_sha256: createHash("sha256").update(response).digest("hex"),
        http_status: 200
      })
      assert.include(sent.current, JSON.stringify(company.company_name))
      // The HTML page has the same bytes.
      const page = yield* client.ask(`${list}/${id}`, { key, headers: { accept: "text/html" } })
      const files = [...page.text.matchAll(/href="data:[^,"]+,([^"]+)"/gu)].map(([, data = ""]) =>
        decodeURIComponent(data.replaceAll("&#39;", "'"))
      )
      assert.deepStrictEqual(files.slice(1), [sent.current, response])
      const receipt = yield* client.ask(`${list}/${id}`, { key })
      assert.strictEqual(files[0], receipt.text)
    }).pipe(Effect.provide(StandIn.layer))
  )

  it.effect("is neither issued nor charged if it cannot be stored", function* () {
    const client = yield* RunningService.make()
    const key = yield* newPaidKey(client)
    const sql = yield* SqlClient.SqlClient
    yield* sql`ALTER FUNCTION vatproof.append RENAME TO append_away`.unprepared
    assertProblem(yield* confirm(client, "DE100440500", key), "INTERNAL_ERROR")
    yield* sql`ALTER FUNCTION vatproof.append_away RENAME TO append`.unprepared
    assert.containSubset((yield* client.ask(list, { key })).body, { data: [], next_cursor: null })
    assert.containSubset((yield* client.ask("/v1/usage", { key })).body, { requests: { used: 0 } })
  })
})
