/** Why the embedded Postgres could not be prepared, started or reached, in a sentence its operator can act on. */
import { type PlatformError, Schema } from "effect"

/** What the operator, or the caller, can tell apart. */
const EmbeddedPostgresReason = Schema.Literals([
  "no_binary", // no server for this platform, or it does not run here
  "no_access", // a folder, a file or the password is not this user's
  "no_space",
  "other_version", // the data was made by another major version
  "not_a_cluster", // something else lies where the data should be
  "port_in_use",
  "owned", // another service runs on this database
  "not_ready", // starting, stopping or just gone: it may be tried again at once
  "failed"
])
type EmbeddedPostgresReason = typeof EmbeddedPostgresReason.Type

export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  reason: EmbeddedPostgresReason,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A refusal of the file system. */
export const fromPlatformError = (cause: PlatformError.PlatformError) => {
  const { reason } = cause
  const place = reason._tag === "BadArgument" ? "" : ` ${reason.pathOrDescriptor ?? ""}`
  return reason._tag === "PermissionDenied"
    ? new EmbeddedPostgresError({
        reason: "no_access",
        message: `This user may not use${place}, which the embedded Postgres needs: run as the user it belongs to, or choose another DATA_DIR`,
        cause
      })
    : fromOutput(`Using${place}`, String(reason.cause ?? cause.message), cause)
}

/** What a program of the server said when it failed. `what` starts the sentence, e.g. `initdb`. */
export const fromOutput = (what: string, output: string, cause?: unknown) => {
  const known = explanations.find(({ pattern }) => pattern.test(output))
  const words = lastWords(output)
  return new EmbeddedPostgresError({
    reason: known?.reason ?? "failed",
    message: `${what} failed. ${known === undefined ? "" : `${known.message} `}It said: ${words === "" ? "nothing" : words}`,
    ...(cause === undefined ? {} : { cause })
  })
}

interface Explanation {
  readonly pattern: RegExp
  readonly reason: EmbeddedPostgresReason
  readonly message: string
}

const explanations: ReadonlyArray<Explanation> = [
  {
    pattern: /ENOSPC|No space left on device|Check free disk space/u,
    reason: "no_space",
    message: "The disk is full: free some space and start again."
  },
  {
    pattern: /Address already in use|could not create any TCP\/IP sockets/u,
    reason: "port_in_use",
    message: "Another program listens on that port: stop it or choose another port."
  },
  {
    pattern: /lock file "postmaster\.pid" (?:already exists|is empty)|pre-existing shared memory block/u,
    reason: "not_ready",
    message: "Another server, or what is left of one, is using the data folder."
  },
  {
    pattern: /EACCES|EPERM|Permission denied/u,
    reason: "no_access",
    message: "The user that Postgres runs as may not use a file or folder: choose a DATA_DIR that belongs to that user."
  }
]

/** The last lines, enough to act on and too little to flood a log. */
const lastWords = (output: string) => output.trim().split("\n").slice(-6).join("\n").slice(-1500)
