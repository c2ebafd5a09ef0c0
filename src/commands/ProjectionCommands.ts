/** `vatproof projections …`: lists and rebuilds the projections. */
import { Duration, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { isSqlError } from "effect/sql/SqlError"
import * as Operator from "#app/layers/Operator.ts"
import * as Storage from "#app/layers/Storage.ts"
import { logStream, ProjectionCorrected } from "#domain/log/LogReadEvents.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as ProjectionRebuild from "#events/log/projections/ProjectionRebuild.ts"
import * as Projections from "#events/log/projections/Projections.ts"
import { tableProjections } from "#events/ProjectionCatalogue.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as TaskCounts from "#events/pending/TaskCounts.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import { asOperator, by, json, optionalReason, print, quietly } from "#app/commands/Operation.ts"
import * as Progress from "#app/commands/Progress.ts"
import { table } from "#app/commands/Table.ts"

class NotAdministrator extends Schema.TaggedError<NotAdministrator>()("NotAdministrator", {}) {
  override get message() {
    return "The database role of the service may not rebuild tables. Run the command with the administrator's DATABASE_URL"
  }
}

class NoSuchProjection extends Schema.TaggedError<NoSuchProjection>()("NoSuchProjection", { message: Schema.String }) {}

const retryFor = "3 seconds"
/**
 * A projection is stalled if events wait for it and it has applied none of them for this time. A running service looks for new events
 * once a second.
 */
const stalledAfterMs = 10_000

const stateOf = ({ outdated, stalled_ms }: Projections.ProjectionState) => {
  if (outdated) return "outdated: rebuild this projection, because its rules have changed"
  if (stalled_ms < stalledAfterMs) return "current"
  return `stalled for ${Math.floor(stalled_ms / 1_000)} s: start the service, or read its log lines for the reason`
}

const wordsOf = ({ oldestMs, quota, running, waiting }: TaskCounts.TaskCounts) => {
  const oldest =
    waiting + running === 0
      ? ""
      : `; the oldest that is not paused is ${Duration.format(Duration.seconds(Math.floor(oldestMs / 1000)))} old`
  return `Accepted validations: ${waiting} waiting, ${running} running, ${quota} paused because their quota is used up${oldest}.`
}

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(
    function* (flags) {
      const states = yield* Projections.list
      const words = table<Projections.ProjectionState>(
        [
          { heading: "NAME", cell: ({ name }) => name },
          { heading: "KIND", cell: ({ kind }) => kind },
          { heading: "VERSION", cell: ({ version }) => version },
          { heading: "POSITION", cell: ({ position }) => position },
          { heading: "LAG", cell: ({ lag }) => lag },
          { heading: "STATE", cell: stateOf }
        ],
        states
      )
      const tasks = yield* Effect.flatMap(TaskCounts.makeRead, QueryPolicy.withRetry(retryFor))
      yield* print(
        flags.json,
        { projections: states.map((state) => ({ ...state })), tasks: { ...tasks } },
        `${words}\n\n${wordsOf(tasks)}`
      )
    },
    Effect.provide(Operator.owner),
    quietly
  )
).pipe(
  Command.withDescription(
    "List the projections with the number of events that each has not applied yet, and count the accepted validations that wait for an answer"
  )
)

/** Returns the names of the projections to rebuild: the given one, or all. */
const namesOf = Effect.fnUntraced(function* (name: Option.Option<string>, all: boolean) {
  const known = tableProjections.map((one) => one.name)
  if (Option.isSome(name) === all) return yield* new NoSuchProjection({ message: "Give the name of a projection, or --all" })
  const unknown = Option.filter(name, (one) => !known.includes(one))
  if (Option.isSome(unknown)) {
    const message = `There is no projection ${unknown.value}. The projections are: ${known.join(", ")}`
    return yield* new NoSuchProjection({ message })
  }
  return new Set(Option.match(name, { onNone: () => known, onSome: (one) => [one] }))
})

const hasChanges = ({ different, missing, surplus }: ProjectionRebuild.Rebuilt) => missing + surplus + different > 0

const changesOf = (rebuilt: ProjectionRebuild.Rebuilt) =>
  hasChanges(rebuilt)
    ? `${rebuilt.name} is corrected: it had ${rebuilt.missing} missing, ${rebuilt.surplus} surplus and ${rebuilt.different} different rows.`
    : `${rebuilt.name} matches the events: nothing was changed.`

const rebuild = Command.make(
  "rebuild",
  {
    name: Argument.String("name").pipe(
      Argument.optional,
      Argument.withDescription("A name that `vatproof projections list` prints")
    ),
    all: Flag.Boolean("all").pipe(Flag.withDefault(false), Flag.withDescription("Rebuild all projections")),
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const names = yield* namesOf(flags.name, flags.all)
      const progress = yield* Progress.make("events applied")
      const rebuilt = yield* Migrations.restore(tableProjections.map(({ name }) => name)).pipe(
        Effect.andThen(ProjectionRebuild.run(names, Storage.projections, progress)),
        Effect.catchIf(
          (error) => isSqlError(error) && error.reason._tag === "AuthorizationError",
          () => Effect.fail(new NotAdministrator({}))
        )
      )
      const { appendFact } = yield* EventStore
      for (const { name: projection, ...rows } of rebuilt.filter(hasChanges))
        yield* appendFact(logStream, ProjectionCorrected.make({ projection, ...rows }))
      yield* print(flags.json, { projections: rebuilt.map((one) => ({ ...one })) }, rebuilt.map(changesOf).join("\n"))
    },
    Effect.provide(Operator.rebuilding),
    quietly,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Correct a projection from the events while the service runs, and print the changes. A dropped table is created again"
  ),
  Command.withShortDescription("Correct a projection from the events"),
  Command.withExamples([
    { command: "vatproof projections rebuild --all", description: "All projections" },
    { command: "vatproof projections rebuild event_index", description: "One projection" }
  ])
)

export const projectionCommands = Command.make("projections").pipe(Command.withSubcommands([list, rebuild]))
