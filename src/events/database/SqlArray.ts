/** Typed array parameters for statements that take a whole batch. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const { bytea, int2, int4, int8, text, timestamptz, uuid } = PgTypes.OID

/** The element types of batches; `int8` takes bigints. */
export const elementType = { bytea, int2, int4, int8, text, timestamptz, uuid }

/** Creates one array parameter. Cannot fail: all element types above have array types. */
export const sqlArray = (values: ReadonlyArray<unknown>, type: number) => Result.getOrThrow(PgTypes.array(values, type))

/** The key of an array parameter's values in each row, and their element type. */
export type SqlColumn<Row> = readonly [key: keyof Row, type: number]

/** Creates one array parameter per column. */
export const sqlColumns = <Row>(rows: ReadonlyArray<Row>, columns: ReadonlyArray<SqlColumn<Row>>) =>
  columns.map(([key, type]) =>
    sqlArray(
      rows.map((row) => row[key]),
      type
    )
  )
