import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, FileSystem, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as BatchResults from "#app/commands/BatchResults.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Saves the results of a simulated transfer, which sends `rows` and then runs `rest`. */
const saveFrom = Effect.fnUntraced(function* (rows: string, rest: Effect.Effect<unknown>) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const stream = Stream.concat(Stream.make(rows), Stream.drain(Stream.fromEffect(rest))).pipe(Stream.encodeText)
  const execute = () => Effect.succeed({ stream })
  const saving = yield* Effect.forkChild(Effect.flip(BatchResults.save(execute, "some-batch", `${folder}/results.csv`)))
  return { files: fs.readDirectory(folder), saving }
})

layer(NodeServices.layer)("the download of the results of a batch", (it) => {
  it.effect("fails if no data arrives for a minute, and leaves no file", function* () {
    const stalled = yield* Deferred.make<void>()
    const { files, saving } = yield* saveFrom("vat_id\r\n", Effect.andThen(Deferred.succeed(stalled, undefined), Effect.never))
    yield* Deferred.await(stalled)
    yield* TestClock.adjust("59 seconds")
    assert.isUndefined(saving.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.instanceOf(yield* Fiber.join(saving), BatchResults.ResultsCutOff)
    assert.deepStrictEqual(yield* files, [])
  })

  it.effect("writes all rows before the last row, unchanged", function* () {
    const fs = yield* FileSystem.FileSystem
    const out = `${yield* fs.makeTempDirectoryScoped()}/results.csv`
    const rows = 'vat_id,city\r\n"DE1","Köln\n#end,\n#end,,complete\r\n"\r\n'
    const stream = Stream.encodeText(Stream.make(...`${rows}#end,,complete,,\r\n`))
    yield* BatchResults.save(() => Effect.succeed({ stream }), "some-batch", out)
    assert.strictEqual(yield* fs.readFileString(out), rows)
  })

  it.effect("fails if the transfer ends before the last row, and leaves no file", function* () {
    const { files, saving } = yield* saveFrom('vat_id\r\n"#end,"\r\n', Effect.void)
    assert.instanceOf(yield* Fiber.join(saving), BatchResults.ResultsCutOff)
    assert.deepStrictEqual(yield* files, [])
  })
})
