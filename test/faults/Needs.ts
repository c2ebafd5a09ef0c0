/** Requirements of a scenario. A scenario is skipped if the machine lacks one. */
import { Effect, Option, Schema } from "effect"
import { run } from "#infra/embedded-postgres/Program.ts"

/** The machine lacks a requirement, which the message names. */
export class ScenarioSkipped extends Schema.TaggedError<ScenarioSkipped>()("ScenarioSkipped", { message: Schema.String }) {}

export const asRoot = (name: string, ...args: ReadonlyArray<string>) =>
  run("/usr/bin/env", ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", name, ...args], { cwd: "/", user: Option.none() })

/** Runs a command that checks a right or a program. Skips the scenario if the command fails. */
export const requireCommand = (requirement: string, name: string, ...args: ReadonlyArray<string>) =>
  Effect.catchTag(asRoot(name, ...args), "ProgramFailed", ({ code, output }) =>
    Effect.fail(
      new ScenarioSkipped({ message: `the scenario needs ${requirement}; ${name} exited with ${code}: ${output.trim()}` })
    )
  )

export const requireRoot = (purpose: string) =>
  process.getuid?.() === 0 ? Effect.void : Effect.fail(new ScenarioSkipped({ message: `the scenario needs root ${purpose}` }))
