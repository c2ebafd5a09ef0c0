/**
 * The command `vatproof` and its subcommands. The module of a subcommand is loaded only if the command line names it, so that
 * `vatproof --version` and `--help` start without the modules of the service.
 */
import { Console, Effect } from "effect"
import { CliOutput, Command } from "effect/cli"

/**
 * A subcommand with its short description, which is its description if it has no other. A command line that does not name it gets a
 * command without flags, for the help text.
 */
const subcommand =
  <const Name extends string, Input, Context, E, R>(
    name: Name,
    description: string,
    load: () => Promise<Command.Command<Name, Input, Context, E, R>>
  ) =>
  (args: ReadonlyArray<string>) =>
    isNamed(name, args)
      ? Effect.map(Effect.promise(load), (loaded) => Command.withDescription(loaded, loaded.description ?? description))
      : Effect.succeed(Command.make(name).pipe(Command.withDescription(description)))

/** The command line names the subcommand, or a global flag that walks through all subcommands. */
const isNamed = (name: string, args: ReadonlyArray<string>) =>
  args.some((arg) => arg === name || arg === "--wizard" || arg.startsWith("--completions"))

const serviceCommands = () => import("#app/commands/ServiceCommands.ts")

const subcommands = [
  subcommand("serve", "Run the service with the official sources, VIES and BZSt", () =>
    serviceCommands().then(({ serve }) => serve)
  ),
  subcommand("sandbox", "Run the service with simulated sources, for trials and tests", () =>
    serviceCommands().then(({ sandbox }) => sandbox)
  ),
  subcommand("migrate", "Apply the migrations to the database. The command serve does the same when it starts", () =>
    serviceCommands().then(({ migrate }) => migrate)
  ),
  subcommand("doctor", "Check this installation: settings, database, sources, TLS, backups and more", () =>
    import("#app/commands/DoctorCommand.ts").then(({ doctor }) => doctor)
  ),
  subcommand("account", "Show accounts, change plans, and close accounts", () =>
    import("#app/commands/AccountCommands.ts").then(({ accountCommands }) => accountCommands)
  ),
  subcommand("key", "Revoke API keys", () => import("#app/commands/KeyCommands.ts").then(({ keyCommands }) => keyCommands)),
  subcommand("usage", "Show usage, and prove that it was metered exactly", () =>
    import("#app/commands/UsageCommands.ts").then(({ usageCommands }) => usageCommands)
  ),
  subcommand("batch", "Validate the VAT IDs of a CSV file", () =>
    import("#app/commands/BatchCommand.ts").then(({ batchCommand }) => batchCommand)
  ),
  subcommand("audit", "Export the log, and prove that nothing was changed", () =>
    import("#app/commands/AuditCommands.ts").then(({ auditCommands }) => auditCommands)
  ),
  subcommand("auditor", "Admit auditors who read the log over HTTP", () =>
    import("#app/commands/AuditorCommands.ts").then(({ auditorCommands }) => auditorCommands)
  ),
  subcommand("notary", "Keys and adoption of the signed log", () =>
    import("#app/commands/NotaryCommands.ts").then(({ notaryCommands }) => notaryCommands)
  ),
  subcommand("personal-data", "Show or erase personal documents, or put them on legal hold", () =>
    import("#app/commands/PersonalDataCommands.ts").then(({ personalDataCommands }) => personalDataCommands)
  ),
  subcommand("projections", "List and rebuild the projections, which derive from the log", () =>
    import("#app/commands/ProjectionCommands.ts").then(({ projectionCommands }) => projectionCommands)
  )
] as const

/** Prints the errors of an invalid command line before the help text, which is longer than a screen. */
const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.andThen(
          Console.error(event.errors.map(({ message }) => `vatproof: ${message}`).join("\n")),
          CliOutput.defaultPresenter.present({ ...event, _tag: "Help", reason: "Implicit" })
        )
      : CliOutput.defaultPresenter.present(event)
})

/** Runs the command of a command line. */
export const run = Effect.fnUntraced(function* (args: ReadonlyArray<string>, version: string) {
  const loaded = yield* Effect.all(subcommands.map((load) => load(args)))
  const vatproof = Command.make("vatproof").pipe(
    Command.withDescription("EU VAT ID validation that keeps the proof"),
    Command.withSubcommands(loaded)
  )
  yield* Effect.provide(Command.runWith(vatproof, { version })(args), presenter)
})
