/** Typed array parameters, for statements that take a whole batch at once. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const { bytea, int2, int4, int8, text, timestamptz, uuid } = PgTypes.OID

/** The types of elements that batches are made of; `int8` takes bigints. */
export const elementType = { bytea, int2, int4, int8, text, timestamptz, uuid }

/** One array parameter. It cannot fail: the element types above all have array types. */
export const sqlArray = (values: ReadonlyArray<unknown>, type: number) => Result.getOrThrow(PgTypes.array(values, type))

/** What one array parameter takes from each row, and the type of its elements. */
export type SqlColumn<Row> = readonly [key: keyof Row, type: number]

/** One array parameter a column. */
export const sqlColumns = <Row>(rows: ReadonlyArray<Row>, columns: ReadonlyArray<SqlColumn<Row>>) =>
  columns.map(([key, type]) =>
    sqlArray(
      rows.map((row) => row[key]),
      type
    )
  )
