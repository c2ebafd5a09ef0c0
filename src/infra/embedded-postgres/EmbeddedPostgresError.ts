/** Errors of preparing, starting or connecting to the embedded Postgres. Their messages tell the operator what to do. */
import { type PlatformError, Schema } from "effect"

/** The kinds of failure that an operator or the calling code can distinguish. */
const EmbeddedPostgresReason = Schema.Literals([
  "no_binary", // there is no server program for this platform, or the program does not run on this system
  "no_access", // this user has no access to a folder or file, or the server rejects the password
  "no_space",
  "other_version", // another major version created the data
  "not_a_cluster", // the data folder contains something else
  "port_in_use",
  "owned", // another service runs on this database
  "not_ready", // the server is starting, is stopping or has just ended: retry immediately
  "failed"
])
type EmbeddedPostgresReason = typeof EmbeddedPostgresReason.Type

export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  reason: EmbeddedPostgresReason,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** Returns the error for a failed operation of the file system. */
export const fromPlatformError = (cause: PlatformError.PlatformError) => {
  const { reason } = cause
  const place = reason._tag === "BadArgument" ? "" : ` ${reason.pathOrDescriptor ?? ""}`
  return reason._tag === "PermissionDenied"
    ? new EmbeddedPostgresError({
        reason: "no_access",
        message: `The user of this process has no access to${place}, which the embedded Postgres needs: run the service as the owner, or choose another DATA_DIR`,
        cause
      })
    : fromOutput(`Using${place}`, String(reason.cause ?? cause.message), cause)
}

/**
 * Returns the error for a failed program. Finds the reason of the failure in the program's output. `program` says in the message
 * what the program was doing, for example `Starting Postgres`.
 */
export const fromOutput = (program: string, output: string, cause?: unknown) => {
  const explanation = explanations.find(({ pattern }) => pattern.test(output))
  const excerpt = lastLines(output)
  return new EmbeddedPostgresError({
    reason: explanation?.reason ?? "failed",
    message: `${program} failed. ${explanation === undefined ? "" : `${explanation.message} `}Output: ${excerpt === "" ? "none" : excerpt}`,
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
    message: "Another program uses the port of Postgres: stop that program or choose another port."
  },
  {
    pattern: /lock file "postmaster\.pid" (?:already exists|is empty)|pre-existing shared memory block/u,
    reason: "not_ready",
    message: "Another server uses the data folder, or has not released it yet."
  },
  {
    pattern: /EACCES|EPERM|Permission denied/u,
    reason: "no_access",
    message: "The user that Postgres runs as has no access to a file or folder: choose a DATA_DIR that belongs to that user."
  }
]

/** Returns the last six lines, 1,500 characters at most. */
const lastLines = (output: string) => output.trim().split("\n").slice(-6).join("\n").slice(-1500)
