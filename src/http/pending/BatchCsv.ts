/** Reads batches as CSV (RFC 4180). Additional columns are stored with the items and returned with the results. */
import { Result } from "effect"
import { done, invalid, type MakeReader } from "#http/pending/BatchItems.ts"

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

/** The columns of an upload: the indexes of the columns of an item, and all others. */
const columnsOf = (names: ReadonlyArray<string>) => {
  const known = names.map((name) => name.trim().toLowerCase())
  const [customId, vatId] = [known.indexOf("custom_id"), known.indexOf("vat_id")]
  const isComplete =
    customId !== -1 && vatId !== -1 && known.lastIndexOf("custom_id") + known.lastIndexOf("vat_id") === customId + vatId
  const others = (cells: ReadonlyArray<string>) => cells.filter((_, index) => index !== customId && index !== vatId)
  return isComplete ? { count: names.length, customId, vatId, others, names: others(names) } : null
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
        return columns === null ? invalid(line, "The first row must name the columns custom_id and vat_id, each once") : done
      }
      if (cells.length !== columns.count) return invalid(line, `The row has ${cells.length} cells; expected ${columns.count}`)
      const { customId, names, others, vatId } = columns
      const more = names.length === 0 ? {} : { additional: others(cells), ...(isFirst ? { columns: names } : {}) }
      isFirst = false
      return add({ custom_id: cells[customId], vat_id: cells[vatId] }, line, more)
    },
    end: () => done
  }
}
