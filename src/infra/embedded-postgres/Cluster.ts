/**
 * The folder of one embedded Postgres: `cluster/data` (the database), `cluster/password` (its only password, mode 600), and `log`
 * and `log.1` (the server's log).
 */
import { Effect, FileSystem, Option, Path, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { Base64Url } from "effect/encoding"
import * as Binaries from "#infra/embedded-postgres/Binaries.ts"
import * as StagingDirectory from "#infra/security/StagingDirectory.ts"
import { EmbeddedPostgresError, fromOutput } from "#infra/embedded-postgres/EmbeddedPostgresError.ts"
import { run, type SystemUser } from "#infra/embedded-postgres/Program.ts"

/** An existing database: its files and password, the programs of Postgres, and the operating system user that runs its server. */
export interface EmbeddedPostgresCluster {
  readonly directory: string
  readonly data: string
  /** The path of the data folder in the arguments of the server. */
  readonly dataArgument: string
  readonly log: string
  readonly password: Redacted.Redacted
  readonly user: Option.Option<SystemUser>
  readonly binaries: Binaries.EmbeddedPostgresBinaries
}

/** The name of the database and of the only role that may log in. */
export const name = "vatproof"

/** The user `nobody` of Linux. A service that runs as root starts Postgres as this user if root owns the data folder. */
const unprivilegedUser: SystemUser = { uid: 65_534, gid: 65_534 }

/**
 * Finds or creates the database in `directory`. If two processes create it at the same time, both use the database that is
 * complete first.
 */
export const prepare = Effect.fn("Cluster.prepare")(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(directory, { recursive: true, mode: 0o711 })
  const real = yield* fs.realPath(directory)
  const data = path.join(real, "cluster/data")
  const user = yield* serverUser([data, real])
  const binaries = yield* Binaries.locate(real, user)
  if (!(yield* isMade(path.join(real, "cluster")))) yield* initialise(real, user, binaries)
  yield* checkVersion(data, binaries)
  return {
    directory: real,
    data,
    dataArgument: dataArgument(data, user),
    log: path.join(real, "log"),
    password: Redacted.make((yield* fs.readFileString(path.join(real, "cluster/password"))).trim()),
    user,
    binaries
  } satisfies EmbeddedPostgresCluster
})

/**
 * Returns the user that runs initdb and postgres, because both refuse to run as root. Returns none if this process is not root.
 * The user is the owner of the first folder in `folders` that exists. If root owns that folder, or no folder exists, it is the
 * unprivileged user.
 */
const serverUser = Effect.fnUntraced(function* (folders: ReadonlyArray<string>) {
  if (process.getuid?.() !== 0) return Option.none<SystemUser>()
  const fs = yield* FileSystem.FileSystem
  for (const folder of folders) {
    if (!(yield* fs.exists(folder))) continue
    const { uid, gid } = yield* fs.stat(folder)
    const owner = Option.all({ uid, gid })
    return Option.some(
      Option.getOrElse(
        Option.filter(owner, (candidate) => candidate.uid !== 0),
        () => unprivilegedUser
      )
    )
  }
  return Option.some(unprivilegedUser)
})

/**
 * Returns a path under which `user` can open the data folder. Another user may lack permission on a parent folder, such as a home
 * directory of mode 700. On Linux, /proc/self/cwd avoids the parent folders: the data folder is the server's working directory.
 */
const dataArgument = (data: string, user: Option.Option<SystemUser>) =>
  Option.isSome(user) && process.platform === "linux" ? "/proc/self/cwd" : data

const initialise = Effect.fnUntraced(function* (
  directory: string,
  user: Option.Option<SystemUser>,
  binaries: Binaries.EmbeddedPostgresBinaries
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const cluster = path.join(directory, "cluster")
  yield* checkPlace(cluster)
  const draft = yield* StagingDirectory.make(directory, "cluster.new-")
  const data = path.join(draft, "data")
  const password = path.join(draft, "password")
  const random = yield* SecureRandom.SecureRandom
  yield* fs.makeDirectory(data, { mode: 0o700 })
  yield* fs.writeFileString(password, `${Base64Url.encode(yield* random.randomBytes(24))}\n`, { mode: 0o600, flag: "wx" })
  if (Option.isSome(user)) {
    yield* Effect.forEach([draft, data, password], (folder) => fs.chown(folder, user.value.uid, user.value.gid))
  }
  yield* initdb(data, user, binaries)
  if (Option.isSome(user)) yield* Effect.forEach([draft, password], (folder) => fs.chown(folder, 0, 0))
  yield* fs.chmod(draft, 0o711)
  yield* publish(draft, cluster)
}, Effect.scoped)

/** Uses the collation of Postgres itself, because the collation of the operating system differs between systems and versions. */
const initdbArguments = [
  "-U",
  name,
  "--auth=scram-sha-256",
  "--pwfile=../password",
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8"
]

const initdb = Effect.fnUntraced(function* (
  data: string,
  user: Option.Option<SystemUser>,
  binaries: Binaries.EmbeddedPostgresBinaries
) {
  const dataPath = dataArgument(data, user)
  yield* run(binaries.initdb, ["-D", dataPath, ...initdbArguments], { cwd: data, user }).pipe(
    Effect.catchTag("ProgramFailed", (failed) => Effect.fail(fromOutput("Creating the database (initdb)", failed.output, failed)))
  )
  yield* run(binaries.postgres, ["--single", "-D", dataPath, "-c", "exit_on_error=on", "postgres"], {
    cwd: data,
    user,
    input: `CREATE DATABASE ${name}\n`
  }).pipe(Effect.catchTag("ProgramFailed", (failed) => Effect.fail(fromOutput("Creating the database", failed.output, failed))))
})

const isMade = Effect.fnUntraced(function* (cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return yield* fs.exists(path.join(cluster, "data/PG_VERSION"))
})

const checkPlace = Effect.fnUntraced(function* (cluster: string) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(cluster)) || (yield* fs.readDirectory(cluster)).length === 0) return
  // Another process may have created the database since this process last looked for it.
  if (yield* isMade(cluster)) return
  return yield* new EmbeddedPostgresError({
    reason: "not_a_cluster",
    message: `${cluster} contains something other than a Postgres database: move it away, or choose another DATA_DIR`
  })
})

const publish = Effect.fnUntraced(function* (draft: string, cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.rename(draft, cluster).pipe(
    Effect.catchTag("PlatformError", (error) =>
      // If another process has renamed its database first, this process uses that database.
      Effect.flatMap(isMade(cluster), (made) => (made ? Effect.void : Effect.fail(error)))
    )
  )
  // Syncs the parent folder to disk. Otherwise a power failure could undo the rename, and all later commits would be lost.
  yield* Effect.flatMap(fs.open(path.dirname(cluster), { flag: "r" }), (folder) => folder.sync)
}, Effect.scoped)

const checkVersion = Effect.fnUntraced(function* (data: string, binaries: Binaries.EmbeddedPostgresBinaries) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const version = (yield* fs.readFileString(path.join(data, "PG_VERSION"))).trim()
  if (version === binaries.major) return
  return yield* new EmbeddedPostgresError({
    reason: "other_version",
    message:
      `${data} was created by Postgres ${version}, and the embedded Postgres is ${binaries.major}, which cannot read it: ` +
      `dump it with Postgres ${version} and restore it, or choose another DATA_DIR`
  })
})
