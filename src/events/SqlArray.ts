/** Typed array parameters, for statements that take a whole batch at once. */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const { bytea, int2, int4, int8, text, timestamptz, uuid } = PgTypes.OID

/** The types of elements that batches are made of; `int8` takes bigints. */
export const elementType = { bytea, int2, int4, int8, text, timestamptz, uuid }

/** One array parameter. It cannot fail: the element types above all have array types. */
export const sqlArray = (values: ReadonlyArray<unknown>, type: number) => Result.getOrThrow(PgTypes.array(values, type))

/** The columns of a table of cells, one array parameter a column. */
export const sqlColumns = (rows: ReadonlyArray<ReadonlyArray<unknown>>, types: ReadonlyArray<number>) =>
  types.map((type, index) =>
    sqlArray(
      rows.map((row) => row[index]),
      type
    )
  )
