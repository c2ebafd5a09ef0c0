import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Option, Path } from "effect"
import * as ExportAudit from "#events/log/export/ExportAudit.ts"
import * as LogExport from "#events/log/export/LogExport.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import * as ProjectionRebuild from "#events/log/projections/ProjectionRebuild.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import { keysOf, log, signer } from "#test/support/log/Keys.ts"
import * as Parcels from "#test/support/log/Parcels.ts"
import { asAdministrator, execute } from "#test/support/MigratedDatabase.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { assert, layer } from "#test/support/Test.ts"

const progress = () => Effect.void
const signed = Layer.succeed(LogSigner, { origin: log.origin, keys: Option.some(keysOf(signer)) })

const findingsOf = ({ findings }: Pick<DatabaseAudit.AuditReport, "findings">) =>
  findings.map(({ message, position }) => `${position}: ${message}`)

const verify = (isFast: boolean) =>
  Effect.flatMap(SchemaOfProgram.comparison, (schema) =>
    Effect.map(DatabaseAudit.run({ verifiers: [signer], kept: [], schema, isFast, progress }), findingsOf)
  )

layer(Layer.mergeAll(SignedLog.layer, signed, Parcels.layer, NodeServices.layer), { excludeTestServices: true })(
  "a log of another product, which knows no VAT ID",
  (it) => {
    it.effect("is verified, exported and rebuilt with the types, checks and tables that the product registered", function* () {
      yield* Parcels.forgetOthers
      yield* Parcels.append(Parcels.sent("P1"))
      const delivered = yield* Parcels.append(Parcels.ParcelDelivered.make({ parcel: "P1" }))
      yield* SignedLog.sign(delivered + 1)
      assert.deepStrictEqual(yield* verify(false), [])
      assert.deepStrictEqual(yield* verify(true), [])

      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const directory = path.join(yield* fs.makeTempDirectoryScoped(), "export")
      yield* LogExport.run({ directory, from: null, to: null, supplier: "", location: "", verifierKeys: [], progress })
      const read = (name: string) => fs.readFileString(path.join(directory, name))
      assert.match(yield* read("parcels.csv"), /^1;"P1";"500"\r$/mu)
      assert.include(yield* read("personal/recipients.csv"), '"Erika Muster"')
      const audit = Effect.map(ExportAudit.run({ directory, kept: [], verifiers: [signer], progress }), findingsOf)
      assert.deepStrictEqual(yield* audit, [])
      yield* fs.writeFileString(path.join(directory, `deliveries/delivery-${delivered}.json`), "{}\n")
      assert.deepStrictEqual(yield* audit, [
        `${delivered}: the file of the delivery delivery-${delivered} differs from the delivery's event`
      ])

      yield* execute("DELETE FROM vatproof.streams WHERE stream_id = 'parcels'")
      const rebuilt = yield* asAdministrator(ProjectionRebuild.run(new Set(["streams"]), [], progress))
      assert.deepStrictEqual(rebuilt, [{ name: "streams", missing: 1, surplus: 0, different: 0 }])
    })

    it.effect("has the findings of the product's check and types", function* () {
      const position = yield* Parcels.append(Parcels.ParcelDelivered.make({ parcel: "P2" }))
      const last = yield* Parcels.append({ type: "ParcelSent", schemaVersion: 1, data: { parcel: 3 } })
      yield* SignedLog.sign(last + 1)
      const unknown = `${position}: the parcel P2 was delivered, but it was not sent`
      assert.deepStrictEqual(yield* verify(true), [unknown])
      assert.deepStrictEqual(yield* verify(false), [
        unknown,
        `${last}: the data of the event does not have the form of ParcelSent`
      ])
    })
  }
)
