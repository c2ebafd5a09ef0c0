/** The requests of a load that each write several rows in one transaction: batches, registrations, sign-ups, new and rotated keys. */
import { Option, Schema } from "effect"
import * as People from "#test/support/People.ts"
import type { Ask } from "#test/support/ServiceClient.ts"

export interface Request {
  readonly kind: string
  readonly path: string
  readonly ask: Ask
  /** Receives the body of a successful response. */
  readonly succeeded: (body: unknown) => void
}

const secretIn = (field: "api_key" | "token") => {
  const decode = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))
  return (body: unknown) =>
    Option.flatMap(decode(body), (fields) => Option.liftPredicate(Schema.is(Schema.String))(fields[field]))
}
const apiKeyIn = secretIn("api_key")
const tokenIn = secretIn("token")

const none = () => {}

/**
 * Returns the function that makes the next request. Each rotation has a key, and each issue a login, that an earlier request of the load
 * created, so an acknowledged account that was lost shows as a failed request. Clients have addresses of their own.
 */
export const make = (batchKey: string, vatIds: ReadonlyArray<string>) => {
  const keys: Array<string> = []
  const tokens: Array<string> = []
  let made = 0

  const batch = (id: string): Request => {
    const items = [0, 1].map((index) => ({ custom_id: `${id}-${index}`, vat_id: vatIds[(made + index) % vatIds.length] ?? "" }))
    return { kind: "batch", path: "/v1/batches", ask: { key: batchKey, body: { items } }, succeeded: none }
  }
  const registration = (id: string): Request => ({
    kind: "registration",
    path: "/v1/register",
    ask: { body: { agent_id: id } },
    succeeded: (body) => keys.push(...Option.toArray(apiKeyIn(body)))
  })
  const signUp = (id: string): Request => ({
    kind: "sign-up",
    path: "/v1/auth/signup",
    ask: { body: { email: `${id}@example.com`, password: People.password } },
    succeeded: (body) => tokens.push(...Option.toArray(tokenIn(body)))
  })
  const issue = (id: string): Request => {
    const token = tokens.shift()
    if (token === undefined) return signUp(id)
    return { kind: "issue", path: "/v1/auth/api-keys", ask: { ...People.bearing(token), body: {} }, succeeded: none }
  }
  const rotation = (id: string): Request => {
    const key = keys.shift()
    return key === undefined
      ? registration(id)
      : { kind: "rotation", path: "/v1/keys/rotate", ask: { key, body: {} }, succeeded: none }
  }

  const turns = [batch, registration, signUp, rotation, issue]
  return (id: string): Request => {
    made += 1
    const { ask, ...request } = (turns[made % turns.length] ?? batch)(id)
    return { ...request, ask: { ...ask, method: "POST", from: `10.0.${made >> 8}.${made & 255}` } }
  }
}
