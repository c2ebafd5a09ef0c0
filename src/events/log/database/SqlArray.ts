/** Creates typed array parameters for statements that process a whole batch. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const { bool, bytea, int2, int4, int8, text, timestamptz, uuid } = PgTypes.OID

/** PostgreSQL's ids of the element types. The values of `int8` are bigints. */
export const elementType = { bool, bytea, int2, int4, int8, text, timestamptz, uuid }

/** Creates an array parameter. `type` is an id in `elementType`. Never throws, because each of those types has an array type. */
export const sqlArray = (values: ReadonlyArray<unknown>, type: number) => Result.getOrThrow(PgTypes.array(values, type))

/** One column of a batch: the key of its values in the rows, and their element type. */
export type SqlColumn<Row> = readonly [key: keyof Row, type: number]

/** Creates an array parameter for each column. */
export const sqlColumns = <Row>(rows: ReadonlyArray<Row>, columns: ReadonlyArray<SqlColumn<Row>>) =>
  columns.map(([key, type]) =>
    sqlArray(
      rows.map((row) => row[key]),
      type
    )
  )
