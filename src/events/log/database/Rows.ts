/** Reads rows whose columns have snake_case names into values whose fields have camelCase names. */
import { Schema, SchemaTransformation } from "effect"

/** An `int8` column: the driver reads it as a bigint. */
export const Int8 = Schema.BigInt.pipe(
  Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transform({ decode: (big) => Number(big), encode: (number) => BigInt(number) })
  )
)

/** Returns the list of a SELECT for the fields of a row's schema: `task_id AS "taskId"`. */
export const columnsFor = (fields: Readonly<Record<string, unknown>>) =>
  Object.keys(fields)
    .map((field) => `${field.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)} AS "${field}"`)
    .join(", ")
