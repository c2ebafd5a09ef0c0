/** A log of validations and receipts, its export, and ways to alter it. */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { checkpointOf, layerSigned, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandJson } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { signer } from "#test/support/log/Keys.ts"

export const key = formatVerifier(signer)
/** Returns the line `extra` of a proof that contains `leaf`. */
export const carrying = (leaf: string) => `extra ${Buffer.from(leaf).toString("base64")}`

const company = { company_name: 'Müller & "Söhne"; GmbH', company_city: "Köln", requester_vat_id: "DE123456789" }

/** A folder for the test, `directory` in it with an export of the whole log, and the API key of the exported events. */
export class Exported extends Context.Service<
  Exported,
  { readonly folder: string; readonly directory: string; readonly apiKey: string }
>()("vatproof/test/Exported") {}

const exported = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  const folder = yield* temporaryFolder
  const apiKey = yield* service.newKey
  yield* RunningService.setPlan(apiKey, "business")
  for (let i = 0; i < 5; i += 1) {
    yield* service.validate("ATU12345678", { key: apiKey })
    yield* service.validate("DE123456789", { key: apiKey, query: company })
  }
  yield* service.validate("ATU12345678")
  yield* checkpointOf(service, 14)
  const directory = join(folder, "export")
  const { failure } = yield* command("audit", "export", "--out", directory)
  assert.isNull(failure)
  // The first `setPlan` appended no event, so an audit would report the plan as wrong. This call restores the plan that the events state.
  yield* RunningService.setPlan(apiKey, "free")
  return Exported.of({ folder, directory, apiKey })
})

export const testLayer = Layer.provideMerge(Layer.effect(Exported, exported), layerSigned())

const Report = Schema.Struct({
  ok: Schema.Boolean,
  findings: Schema.Array(Schema.Struct({ position: Schema.NullOr(Schema.Int), message: Schema.String }))
})

export const verify = (directory: string) => commandJson(Report, "audit", "verify", "--export", directory, "--key", key)

export const file = (directory: string, name: string) => ({
  text: readFileSync(join(directory, name), "utf8"),
  write: (text: string) => writeFileSync(join(directory, name), text)
})

export const edit = (name: string, change: (text: string) => string) => (directory: string) => {
  const { text, write } = file(directory, name)
  const changed = change(text)
  assert.notStrictEqual(changed, text)
  write(changed)
}

export const lines = (change: (lines: ReadonlyArray<string>) => ReadonlyArray<string>) => (text: string) =>
  change(text.split("\n")).join("\n")

export const first = (directory: string, folder: string) => join(folder, readdirSync(join(directory, folder))[0] ?? "")
