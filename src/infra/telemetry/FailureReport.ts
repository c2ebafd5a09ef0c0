/**
 * Formats failures for logs: names, codes and stack frames. Messages that contain data (parameters of a statement, a URL, a value
 * that did not decode) are replaced by a description without the data.
 */
import { type Cause, Predicate, Schema, SchemaIssue } from "effect"
import * as HttpClientError from "effect/http/HttpClientError"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** One error. `stack` has only the stack frames. `cause` is the error that caused this error. */
export interface FailureReport {
  readonly type: string
  readonly message: string
  readonly stack?: string
  readonly cause?: FailureReport
}

/** Limits of a report: the errors of one cause, the nested causes of one error, and the frames of one stack. */
const maxErrors = 5
const maxCauses = 4
const maxFrames = 12

/** Returns at most `maxErrors` errors of a cause, and none for an interruption. */
export const make = (cause: Cause.Cause<unknown>): ReadonlyArray<FailureReport> =>
  cause.reasons
    .flatMap((reason) => {
      if (reason._tag === "Interrupt") return []
      return [reportOf(reason._tag === "Fail" ? reason.error : reason.defect, 0)]
    })
    .slice(0, maxErrors)

const reportOf = (error: unknown, depth: number): FailureReport => {
  const inner = Predicate.hasProperty(error, "cause") ? error.cause : undefined
  const stack = framesOf(error)
  return {
    ...describe(error),
    ...(stack === "" ? {} : { stack }),
    // Omits the cause of a SqlError, because it repeats the error's reason.
    ...(inner === undefined || depth >= maxCauses || isSqlError(error) ? {} : { cause: reportOf(inner, depth + 1) })
  }
}

const describe = (error: unknown): { readonly type: string; readonly message: string } => {
  if (isSqlError(error)) return { type: `SqlError.${error.reason._tag}`, message: sqlMessage(error) }
  if (Schema.isSchemaError(error)) return { type: "SchemaError", message: `Decoding failed at: ${pathsOf(error)}` }
  if (HttpClientError.isHttpClientError(error)) {
    return { type: `HttpClientError.${error.reason._tag}`, message: `${error.request.method} to an external server failed` }
  }
  if (Predicate.hasProperty(error, "message") && Predicate.isString(error.message)) {
    return { type: typeOf(error), message: error.message }
  }
  return { type: typeof error, message: typeof error === "string" ? error : "no message" }
}

const typeOf = (error: object): string => {
  if (Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag)) return error._tag
  return Predicate.hasProperty(error, "name") && Predicate.isString(error.name) ? error.name : "Error"
}

/**
 * The classes of PostgreSQL errors whose message is logged. They concern the server, its resources or the statement of the
 * service. Messages of data exceptions (22), constraints (23) and raised exceptions (P0) are not logged, because they may quote a
 * value (https://www.postgresql.org/docs/17/errcodes-appendix.html, read 2026-11).
 */
const openClasses = new Set(["08", "25", "40", "42", "53", "54", "55", "57", "58", "XX"])

const sqlMessage = ({ reason }: SqlError): string => {
  const { cause } = reason
  const code = textAt(cause, "code")
  const constraint = textAt(cause, "constraint")
  const isServers = /^[0-9A-Z]{5}$/u.test(code)
  const message = !isServers || openClasses.has(code.slice(0, 2)) ? textAt(cause, "message") : ""
  const parts = [code, constraint, message === "" && !isServers ? reason._tag : message]
  return parts.filter((part) => part !== "").join(" ")
}

const textAt = (value: unknown, name: string): string => {
  const found = Predicate.hasProperty(value, name) ? value[name] : undefined
  return Predicate.isString(found) ? found : ""
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const pathsOf = (error: Schema.SchemaError): string =>
  formatIssues(error.issue)
    .issues.slice(0, maxErrors)
    .map(
      ({ path }) => (path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".") || "the whole value"
    )
    .join(", ")

/** Returns the frames of a stack without its first lines, which repeat the message. */
const framesOf = (error: unknown): string =>
  textAt(error, "stack")
    .split("\n")
    .filter((line) => /^\s+at /u.test(line))
    .slice(0, maxFrames)
    .map((line) => line.trim())
    .join("\n")
