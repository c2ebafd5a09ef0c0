/** Reads the cause of a failed statement, which the server or the network reported. */
import { Predicate } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** Returns the message of the server or the network. It may name the host, role or database, but no password. */
export const causeOf = (error: SqlError) => wordsOf(error, "message") || codeOf(error) || error.message

/** Returns the code of an error. A network error has no message, only a code, if the host name has several addresses. */
export const codeOf = (error: SqlError) => wordsOf(error, "code")

/** Returns the message of any error. For a failed SQL statement it is the message of the database. */
export const sentenceOf = (error: unknown) => {
  if (isSqlError(error)) return `The database rejected the command: ${causeOf(error)}`
  return Predicate.isError(error) ? error.message : String(error)
}

const wordsOf = ({ reason: { cause } }: SqlError, property: "message" | "code") => {
  const words = Predicate.isObject(cause) ? Reflect.get(cause, property) : ""
  return Predicate.isString(words) ? words : ""
}
