/** Compares the schema after all migrations with migrations/schema.txt, whose diff shows each change of the schema. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { fileURLToPath } from "node:url"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { layer } from "#test/support/Test.ts"

const file = fileURLToPath(new URL("../../../migrations/schema.txt", import.meta.url))

layer(MigratedDatabase.layer, { excludeTestServices: true })("a database with all migrations", (it) => {
  it.effect(
    "has the schema in schema.txt (to update the file: npm run test:only -- test/infra/postgres/MigrationsSchema.test.ts -u)",
    function* ({ expect }) {
      const schema = yield* Effect.provide(SchemaComparison.description, NodeServices.layer)
      yield* Effect.promise(() => expect(schema).toMatchFileSnapshot(file))
    }
  )
})
