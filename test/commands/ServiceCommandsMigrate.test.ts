/** `vatproof migrate --check` on a database without migrations, and on one that has them all. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Layer } from "effect"
import { SqlClient } from "effect/sql"
import { SecureRandom } from "effect/crypto"
import { command } from "#test/support/CommandLine.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

const ground = Layer.mergeAll(TestDatabase.layerEmptyClient, NodeServices.layer, SecureRandom.layerWebCrypto)

layer(ground, { excludeTestServices: true })("`vatproof migrate --check`", (it) => {
  it.effect("names the files that would be applied and fails, applies none, and succeeds after they are applied", function* () {
    const sql = yield* SqlClient.SqlClient
    const pending = yield* command("migrate", "--check")
    assert.match(pending.failure ?? "", /run "vatproof migrate" first \(0001_roles, .*protection\)$/u)
    assert.lengthOf(yield* sql`SELECT FROM pg_namespace WHERE nspname = 'vatproof'`, 0)
    assert.isNull((yield* command("migrate")).failure)
    const applied = yield* command("migrate", "--check")
    assert.deepStrictEqual([applied.failure, applied.output], [null, "The database is up to date."])
  })
})
