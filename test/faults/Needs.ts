/** Requirements of a scenario. If the machine lacks one, the scenario is skipped with a message. */
import { Effect, Option, Schema } from "effect"
import { run } from "#infra/embedded-postgres/Program.ts"

/** The scenario cannot run here; the message names what it needs. */
export class LeftOut extends Schema.TaggedError<LeftOut>()("LeftOut", { message: Schema.String }) {}

export const asRoot = (name: string, ...args: ReadonlyArray<string>) =>
  run("/usr/bin/env", ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", name, ...args], { cwd: "/", user: Option.none() })

/** Fails unless `command` succeeds: only a trial shows what a container allows. */
export const ableTo = (what: string, name: string, ...args: ReadonlyArray<string>) =>
  Effect.catchTag(asRoot(name, ...args), "ProgramFailed", ({ code, output }) =>
    Effect.fail(new LeftOut({ message: `it needs ${what}; ${name} ended with ${code}: ${output.trim()}` }))
  )

export const root = (why: string) =>
  process.getuid?.() === 0 ? Effect.void : Effect.fail(new LeftOut({ message: `it needs root, ${why}` }))
