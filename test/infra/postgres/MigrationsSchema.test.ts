/** Compares the schema after all migrations with migrations/schema.txt, whose diff shows each change of the schema. */
import { Effect } from "effect"
import { fileURLToPath } from "node:url"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as SchemaDump from "#test/support/SchemaDump.ts"
import { layer } from "#test/support/Test.ts"

const file = fileURLToPath(new URL("../../../migrations/schema.txt", import.meta.url))

layer(MigratedDatabase.layer, { excludeTestServices: true })("a database with all migrations", (it) => {
  it.effect(
    "has the schema in schema.txt (to update the file: npm run test:only -- test/infra/postgres/MigrationsSchema.test.ts -u)",
    function* ({ expect }) {
      const schema = yield* MigratedDatabase.asAdministrator(SchemaDump.make)
      yield* Effect.promise(() => expect(schema).toMatchFileSnapshot(file))
    }
  )
})
