/** A role that can log in to the test's database until the scope ends. It has no memberships. */
import { Effect, Redacted } from "effect"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

const password = "of-a-test"

/** Creates the role. Returns its name, and the URL with which it logs in. */
export const make = Effect.gen(function* () {
  const { name, url } = yield* TestDatabase
  const login = `login_${name.slice(-12)}`
  yield* Effect.acquireRelease(MigratedDatabase.execute(`CREATE ROLE ${login} LOGIN PASSWORD '${password}'`), () =>
    Effect.ignore(MigratedDatabase.execute(`DROP ROLE ${login}`))
  )
  const asLogin = new URL(Redacted.value(url))
  asLogin.username = login
  asLogin.password = password
  return { login, url: Redacted.make(asLogin.href) }
})
