/** People and programs that sign up and log in at a running service. */
import { Effect, MutableRef, Schema } from "effect"
import type { Ask, Reply, ServiceClient } from "#test/support/ServiceClient.ts"

export const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
export const password = "correct horse"

export const signUp = (service: ServiceClient, email: string, more: Ask = {}) =>
  service.post("/v1/auth/signup", { email, password }, more)

export const signUpByBrowser = (service: ServiceClient, email: string, more: Ask = {}) =>
  signUp(service, email, { ...more, headers: { "user-agent": browser, ...more.headers } })

export const logIn = (service: ServiceClient, email: string, more: Ask & { readonly password?: string } = {}) =>
  service.post("/v1/auth/login", { email, password: more.password ?? password }, more)

const decodeToken = Schema.decodeUnknownEffect(
  Schema.Struct({ token: Schema.String, user_id: Schema.optionalKey(Schema.String) })
)

/** Returns the access token in the response to a signup or a login. */
export const tokenIn = ({ body }: Reply) => Effect.map(decodeToken(body), ({ token }) => token)

export const bearing = (token: string): Ask => ({ headers: { authorization: `Bearer ${token}` } })

const users = MutableRef.make(0)

/** Signs up a user, who is verified at once. Returns the user's access token and account id. */
export const newUser = Effect.fnUntraced(function* (service: ServiceClient) {
  const email = `user${MutableRef.incrementAndGet(users)}@example.com`
  const { token, user_id } = yield* Effect.flatMap(signUp(service, email), ({ body }) => decodeToken(body))
  return { email, token, accountId: user_id ?? "" }
})

const decodeRegistered = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))

/** Registers without a password and returns the API key. */
export const register = Effect.fnUntraced(function* (service: ServiceClient, body: unknown, more: Ask = {}) {
  const { api_key: key } = yield* Effect.flatMap(service.post("/v1/register", body, more), (reply) =>
    decodeRegistered(reply.body)
  )
  return { key }
})

const CreatedKey = Schema.Struct({ id: Schema.String, key: Schema.String, created_at: Schema.String })
const decodeKey = Schema.decodeUnknownEffect(CreatedKey)

/** Issues a key and returns it. */
export const issueKey = (service: ServiceClient, token: string, body: unknown = {}) =>
  Effect.flatMap(service.post("/v1/auth/api-keys", body, bearing(token)), (reply) => decodeKey(reply.body))
