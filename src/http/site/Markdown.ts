/** Converts the Markdown of the interface description to HTML: headings, paragraphs, lists, tables, code and bold text. */
import { escape } from "#http/site/Page.ts"

/** Returns a Markdown text as HTML. HTML characters in the text are escaped. */
export const markdown = (text: string): string =>
  text
    .split(/\n{2,}/u)
    .map((block) => blockOf(block.trim()))
    .join("\n")

const blockOf = (block: string): string => {
  const [, marks = "", heading = ""] = /^(#{2,4}) (.+)$/u.exec(block) ?? []
  if (heading !== "") return `<h${marks.length}>${inline(heading)}</h${marks.length}>`
  if (block.startsWith("|")) return tableOf(block.split("\n"))
  if (block.startsWith("- ")) {
    const items = block.slice(2).split(/\n- /u)
    return `<ul>\n${items.map((item) => `<li>${inline(item)}</li>`).join("\n")}\n</ul>`
  }
  if (block.startsWith("```")) return `<pre>${escape(block.replace(/^```.*\n|\n```$/gu, ""))}</pre>`
  return block === "" ? "" : `<p>${inline(block)}</p>`
}

const cellsOf = (line: string) => line.replace(/^\||\|$/gu, "").split("|")

/** Converts a table. Its second line only separates the head from the rows. */
const tableOf = ([head = "", _, ...rows]: ReadonlyArray<string>): string => {
  const headOf = cellsOf(head).map((cell) => `<th scope="col">${inline(cell.trim())}</th>`)
  const bodyOf = rows.map(
    (row) =>
      `<tr>${cellsOf(row)
        .map((cell) => `<td>${inline(cell.trim())}</td>`)
        .join("")}</tr>`
  )
  return `<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n<thead><tr>${headOf.join("")}</tr></thead>\n<tbody>\n${bodyOf.join("\n")}\n</tbody>\n</table></div>`
}

/** Escapes a line, and converts its code and its bold text. Asterisks within code stay as they are. */
const inline = (text: string): string =>
  escape(text)
    .split("`")
    .map((part, index) => (index % 2 === 1 ? `<code>${part}</code>` : part.replace(/\*\*(.+?)\*\*/gu, "<strong>$1</strong>")))
    .join("")
