/** Creates a caller with events that an auditor can search, and decodes an auditor's search results. */
import { Effect, Schema } from "effect"
import * as RunningService from "#test/support/RunningService.ts"
import * as Rows from "#test/support/Rows.ts"

export const Events = Schema.Struct({
  data: Schema.Array(Schema.Struct({ position: Schema.Int, type: Schema.String, data: Schema.Json })),
  next_cursor: Schema.NullOr(Schema.String)
})
export const eventsIn = Schema.decodeUnknownEffect(Events)

const company = { company_name: "Musterfirma GmbH", company_city: "Berlin", requester_vat_id: "DE123456789" }

const Confirmed = Schema.Struct({ qualified_confirmation: Schema.Struct({ receipt_id: Schema.String }) })

/** Creates an API key on the plan business, with a validation and a receipt. */
export const businessCaller = Effect.gen(function* () {
  const { newKey, validate } = yield* RunningService.RunningService
  const key = yield* newKey
  yield* RunningService.setPlan(key, "business")
  yield* validate("ATU12345678", { key })
  const { body } = yield* validate("DE123456789", { key, query: company })
  const { qualified_confirmation } = yield* Schema.decodeUnknownEffect(Confirmed)(body)
  const { account_id, key_id } = yield* Rows.one(
    { account_id: Schema.String, key_id: Schema.String },
    (sql) => sql`SELECT account_id, key_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea)`
  )
  return { key, keyId: key_id, accountId: account_id, receiptId: qualified_confirmation.receipt_id }
})

export const typesOf = (page: typeof Events.Type) => page.data.map(({ type }) => type)
