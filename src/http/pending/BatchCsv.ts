/** Reads batches as CSV (RFC 4180). Additional columns are stored with the items and returned with the results. */
import { Result } from "effect"
import { companyFields } from "#http/validation/ValidationApi.ts"
import { done, invalid, Item, type MakeReader } from "#http/pending/BatchItems.ts"

/** Returns the cells of a row. A failure describes the syntax error. */
const cellsOf = (text: string, delimiter: string): Result.Result<ReadonlyArray<string>, string> => {
  const cells: Array<string> = []
  let rest = text
  while (true) {
    const quoted = /^"((?:[^"]|"")*)"/u.exec(rest)
    if (quoted === null && rest.startsWith('"')) return Result.fail("A quoted cell must end with a quotation mark")
    const plain = rest.split(delimiter, 1)[0] ?? ""
    if (quoted === null && plain.includes('"')) return Result.fail("A cell with quotation marks must be quoted")
    cells.push(quoted === null ? plain : (quoted[1] ?? "").replaceAll('""', '"'))
    rest = rest.slice(quoted === null ? plain.length : quoted[0].length)
    if (rest === "") return Result.succeed(cells)
    if (!rest.startsWith(delimiter)) return Result.fail("A cell must end at its closing quotation mark")
    rest = rest.slice(delimiter.length)
  }
}

/**
 * The columns of an upload: those of the fields of an item, and all others. Company data without a column for the requester is not meant for
 * a confirmation.
 */
const columnsOf = (names: ReadonlyArray<string>) => {
  const known = names.map((name) => name.trim().toLowerCase())
  const isPlain = !known.includes("requester_vat_id")
  const fields = new Set(Object.keys(Item.fields).filter((name) => !(isPlain && name in companyFields)))
  const own = known.filter((name) => fields.has(name))
  const isComplete = own.includes("custom_id") && own.includes("vat_id") && new Set(own).size === own.length
  const itemOf = (cells: ReadonlyArray<string>) =>
    Object.fromEntries(known.flatMap((name, index) => (fields.has(name) ? [[name, cells[index]]] : [])))
  const others = (cells: ReadonlyArray<string>) => cells.filter((_, index) => !fields.has(known[index] ?? ""))
  return isComplete ? { count: names.length, itemOf, others, names: others(names) } : null
}

export const csvReader: MakeReader = (add) => {
  let delimiter = ","
  let columns: ReturnType<typeof columnsOf> = null
  let isFirst = true
  return {
    record: (record, line) => {
      const text = record.replace(/\r?\n?$/u, "")
      if (text.trim() === "") return done
      if (columns === null && !text.includes(",") && text.includes(";")) delimiter = ";"
      const read = cellsOf(text, delimiter)
      if (Result.isFailure(read)) return invalid(line, read.failure)
      const cells = read.success
      if (columns === null) {
        columns = columnsOf(cells)
        return columns === null
          ? invalid(line, "The first row must name the columns custom_id and vat_id, and each column of an item once")
          : done
      }
      if (cells.length !== columns.count) return invalid(line, `The row has ${cells.length} cells; expected ${columns.count}`)
      const { itemOf, names, others } = columns
      const more = names.length === 0 ? {} : { additional: others(cells), ...(isFirst ? { columns: names } : {}) }
      isFirst = false
      return add(itemOf(cells), line, more)
    },
    end: () => done
  }
}
