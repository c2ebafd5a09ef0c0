/** `vatproof projections …`: read models that follow the log. */
import { Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { isSqlError } from "effect/sql/SqlError"
import * as App from "#app/app.ts"
import * as ProjectionRebuild from "#events/ProjectionRebuild.ts"
import * as Projections from "#events/Projections.ts"
import { json, print, quietly } from "#app/commands/Operation.ts"
import * as Progress from "#app/commands/Progress.ts"
import { table } from "#app/commands/Table.ts"

class NotAdministrator extends Schema.TaggedError<NotAdministrator>()("NotAdministrator", {}) {
  override get message() {
    return "A rebuild makes a table, which the service's role may not: give the DATABASE_URL of the administrator, who also migrates"
  }
}

class NoSuchProjection extends Schema.TaggedError<NoSuchProjection>()("NoSuchProjection", { message: Schema.String }) {}

/** A service that runs moves each once a second. */
const stalledAfterMs = 10_000

const stateOf = ({ outdated, stalled_ms }: Projections.ProjectionState) => {
  if (outdated) return "rebuild it: its rules have changed"
  if (stalled_ms < stalledAfterMs) return "current"
  return `not moved for ${Math.floor(stalled_ms / 1_000)} s: no service runs, or its log says why`
}

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(
    function* (flags) {
      const states = yield* Projections.list(App.projections)
      const words = table<Projections.ProjectionState>(
        [
          { heading: "NAME", cell: ({ name }) => name },
          { heading: "VERSION", cell: ({ version }) => version },
          { heading: "POSITION", cell: ({ position }) => position },
          { heading: "LAG", cell: ({ lag }) => lag },
          { heading: "STATE", cell: stateOf }
        ],
        states
      )
      yield* print(flags.json, { projections: states.map((state) => ({ ...state })) }, states.length === 0 ? "None yet." : words)
    },
    Effect.provide(App.owner),
    quietly
  )
).pipe(Command.withDescription("List the projections with their lag: how many events each has not seen yet"))

const rebuild = Command.make(
  "rebuild",
  { name: Argument.String("name").pipe(Argument.withDescription("As list prints it")), json },
  Effect.fnUntraced(
    function* (flags) {
      const all = yield* Effect.forEach(App.projections, (definition) =>
        Effect.map(definition, ({ name }) => ({ name, definition }))
      )
      const found = all.find(({ name }) => name === flags.name)
      if (found === undefined) {
        const message = `There is no projection ${flags.name}; there are: ${all.map(({ name }) => name).join(", ")}`
        return yield* new NoSuchProjection({ message })
      }
      const progress = yield* Progress.make("events applied")
      const applied = yield* ProjectionRebuild.run(found.definition, progress).pipe(
        Effect.catchIf(
          (error) => isSqlError(error) && error.reason._tag === "AuthorizationError",
          () => Effect.fail(new NotAdministrator({}))
        )
      )
      return yield* print(
        flags.json,
        { name: flags.name, applied },
        `${flags.name} is made anew from ${applied} events and in use.`
      )
    },
    Effect.provide(App.owner),
    quietly
  )
).pipe(
  Command.withDescription("Make a projection anew beside the live one and put it in its place, while the service runs"),
  Command.withShortDescription("Make a projection anew, without downtime")
)

export const projectionCommands = Command.make("projections").pipe(
  Command.withDescription("The read models that follow the log"),
  Command.withSubcommands([list, rebuild])
)
