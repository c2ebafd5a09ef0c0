/** Reads batches as CSV (RFC 4180). Cells must not contain line breaks, so each line is a row, and an error can name its line. */
import { Result } from "effect"
import { done, type MakeReader } from "#http/validation/BatchItems.ts"

/** Returns the cells of a line. A failure describes the syntax error. */
const cellsOf = (text: string, delimiter: string): Result.Result<ReadonlyArray<string>, string> => {
  const cells: Array<string> = []
  let rest = text
  while (true) {
    const quoted = /^"((?:[^"]|"")*)"/u.exec(rest)
    if (quoted === null && rest.startsWith('"')) return Result.fail("A quoted cell must end on its line")
    const plain = rest.split(delimiter, 1)[0] ?? ""
    if (quoted === null && plain.includes('"')) return Result.fail("A cell with quotation marks must be quoted")
    cells.push(quoted === null ? plain : (quoted[1] ?? "").replaceAll('""', '"'))
    rest = rest.slice(quoted === null ? plain.length : quoted[0].length)
    if (rest === "") return Result.succeed(cells)
    if (!rest.startsWith(delimiter)) return Result.fail("A cell must end at its closing quotation mark")
    rest = rest.slice(delimiter.length)
  }
}

export const csvReader: MakeReader = (add) => {
  let delimiter = ","
  let header: ReadonlyArray<string> | null = null
  return {
    line: (text) => {
      if (text.trim() === "") return done
      if (header === null && !text.includes(",") && text.includes(";")) delimiter = ";"
      const cells = cellsOf(text, delimiter)
      if (Result.isFailure(cells)) return Result.fail(cells.failure)
      if (header === null) {
        header = cells.success.map((name) => name.trim().toLowerCase())
        return header.toSorted().join() === "custom_id,vat_id"
          ? done
          : Result.fail("The first line must name the columns custom_id and vat_id, and no others")
      }
      if (cells.success.length !== header.length)
        return Result.fail(`The line has ${cells.success.length} cells; expected ${header.length}`)
      return add(Object.fromEntries(header.map((name, index) => [name, cells.success[index]])))
    },
    end: () => done
  }
}
