import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { command } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"

layer(RunningService.layerGround)("vatproof audit verify", (it) => {
  it.effect.each([
    [
      ["--proof", "one", "--checkpoint", "kept"],
      "--checkpoint works with the database or --export. A proof has its own checkpoint"
    ],
    [["--event", "one"], "--event needs --proof"],
    [["--export", "out", "--event", "one"], "--event needs --proof"],
    [["--export", "out", "--by", "carol"], "--by and --reason work only with the database, whose log records them"],
    [["--export", "out", "--proof", "one"], "Give --proof or --export, not both"]
  ] as const)("rejects arguments that it would not use: %j", ([given, message]) =>
    Effect.map(command("audit", "verify", ...given), ({ failure }) => assert.strictEqual(failure, message))
  )
})
