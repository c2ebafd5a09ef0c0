import { Schema } from "effect"
import { ReceiptSummary } from "#domain/receipts/Receipt.ts"
import { confirm, newPaidKey, receiptIdOf, receiptsPath as list } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const Page = Schema.Struct({ data: Schema.Array(ReceiptSummary), next_cursor: Schema.NullOr(Schema.String) })
const decodePage = Schema.decodeUnknownEffect(Page, { onExcessProperty: "error" })

layer(RunningService.layerShared(), { excludeTestServices: true })("the receipts of an account", (it) => {
  it.effect("include the receipts of all its keys, also of revoked keys, and no receipts of other accounts", function* () {
    const client = yield* RunningService.RunningService
    const { token } = yield* People.newUser(client)
    const access = People.bearing(token)
    const keys = [yield* People.issueKey(client, token), yield* People.issueKey(client, token)]
    const ids: Array<string> = []
    for (const [index, { key }] of keys.entries()) {
      yield* RunningService.setPlan(key, "business")
      ids.unshift(yield* receiptIdOf(yield* confirm(client, `DE10044090${index}`, key)))
    }
    yield* client.ask(`/v1/auth/api-keys/${keys[0]?.id}`, { ...access, method: "DELETE" })
    const page = yield* client.ask(list, { ...access, query: { limit: "1" } })
    const first = yield* decodePage(page.body)
    const rest = yield* client.ask(list, { ...access, query: { cursor: first.next_cursor ?? "" } })
    const listed = [...first.data, ...(yield* decodePage(rest.body)).data].map(({ receipt_id }) => receipt_id)
    assert.deepStrictEqual(listed, ids)
    const about = yield* client.ask(list, { ...access, query: { target_vat_id: "DE100440900" } })
    assert.deepStrictEqual(
      (yield* decodePage(about.body)).data.map(({ receipt_id }) => receipt_id),
      ids.slice(1)
    )
    const stranger = yield* People.newUser(client)
    for (const id of ids) {
      const own = yield* client.ask(`${list}/${id}`, access)
      assert.containSubset(own, { status: 200, body: { receipt_id: id } })
      assertProblem(yield* client.ask(`${list}/${id}`, People.bearing(stranger.token)), "NOT_FOUND")
    }
    assert.containSubset(yield* client.ask(list, People.bearing(stranger.token)), { status: 200, body: { data: [] } })
    // Each key reads only its own receipts.
    assertProblem(yield* client.ask(`${list}/${ids[1]}`, { key: keys[1]?.key }), "NOT_FOUND")
  })

  it.effect("are returned only for a valid login token or API key; a misspelled filter is rejected", function* () {
    const client = yield* RunningService.RunningService
    const key = yield* newPaidKey(client)
    const { token } = yield* People.newUser(client)
    for (const more of [{}, People.bearing(`${token}x`), People.bearing(key), { ...People.bearing(token), key: `${key}x` }]) {
      assertProblem(yield* client.ask(list, more), "UNAUTHORIZED")
    }
    const misspelled = yield* client.ask(list, { key, query: { target_vatid: "DE123456789" } })
    assert.include(assertProblem(misspelled, "VALIDATION_ERROR").message, "did you mean target_vat_id?")
    assert.strictEqual((yield* client.ask(list, People.bearing(`${token}x`))).headers["www-authenticate"], "Bearer")
  })
})
