/**
 * Writes index.xml and its document type, which describe the CSV files for the programs of the tax authorities. Both files follow
 * the description standard for data media exchange, version 1.5 of 1 September 2004 (BMF, "Ergänzende Informationen zur
 * Datenträgerüberlassung", 28 November 2019; read 2026-11).
 */
import { purposeIn } from "#domain/log/LogPurpose.ts"
import type { ExportManifest } from "#events/log/export/ExportManifest.ts"
import { delimiter, type ExportCatalogue, type ExportColumn, type ExportTable, tablesOf } from "#events/log/export/ExportTable.ts"

export const indexFile = "index.xml"
/**
 * File name of the document type. The export does not use the official name, gdpdu-01-09-2004.dtd, because this file has only a
 * part of the official document type.
 */
export const doctypeFile = "index.dtd"

const commentOf = ({ from, log, to }: ExportManifest) =>
  `${purposeIn(log) === "sandbox" ? "SIMULIERT, KEIN NACHWEIS: " : ""}Prüfprotokoll ${log}, Positionen ${from} bis ${to - 1}`

const escaped = (text: string) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replace(/\p{Cc}+/gu, " ")

const element = (name: string, text: string) => `<${name}>${escaped(text)}</${name}>`

const kinds = {
  text: "<AlphaNumeric/>",
  number: "<Numeric><Accuracy>0</Accuracy></Numeric>",
  date: "<Date><Format>YYYY-MM-DD</Format></Date>"
} as const satisfies Record<ExportColumn["kind"], string>

const columnOf = ({ description, kind, name }: ExportColumn, index: number) => {
  const tag = index === 0 ? "VariablePrimaryKey" : "VariableColumn"
  return `          <${tag}>${element("Name", name)}${element("Description", description)}${kinds[kind]}</${tag}>`
}

const tableOf = ({ columns, description, file, name }: ExportTable, index: number) => [
  "      <Table>",
  `        ${element("URL", file)}`,
  `        ${element("Name", name)}`,
  `        ${element("Description", description)}`,
  "        <UTF8/>",
  "        <DecimalSymbol>,</DecimalSymbol>",
  "        <DigitGroupingSymbol>.</DigitGroupingSymbol>",
  // The data begins in row 2, because row 1 has the column names.
  "        <Range><From>2</From></Range>",
  "        <VariableLength>",
  `          ${element("ColumnDelimiter", delimiter)}`,
  "          <RecordDelimiter>&#13;&#10;</RecordDelimiter>",
  "          <TextEncapsulator>&quot;</TextEncapsulator>",
  ...columns.map(columnOf),
  ...(index === 0 ? [] : ["          <ForeignKey><Name>position</Name><References>Ereignisse</References></ForeignKey>"]),
  "        </VariableLength>",
  "      </Table>"
]

/** Returns the content of index.xml. */
export const mediaDescription = ({ tables }: ExportCatalogue["Service"], manifest: ExportManifest): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<!DOCTYPE DataSet SYSTEM "${doctypeFile}">`,
    "<DataSet>",
    "  <Version>1.0</Version>",
    "  <DataSupplier>",
    `    ${element("Name", manifest.supplier)}`,
    `    ${element("Location", manifest.location)}`,
    `    ${element("Comment", commentOf(manifest))}`,
    "  </DataSupplier>",
    "  <Media>",
    "    <Name>Datenträger 1</Name>",
    ...tablesOf(tables, manifest.log).flatMap(tableOf),
    "  </Media>",
    "</DataSet>",
    ""
  ].join("\n")

/**
 * The part of the official document type that index.xml uses. If index.xml is valid by this part, it is also valid by the whole
 * official document type.
 */
export const doctype = [
  "<!-- Part of the description standard of 1 September 2004 (version 1.5): the elements that the index.xml beside it uses. -->",
  "<!ELEMENT DataSet (Version, DataSupplier, Media)>",
  "<!ELEMENT DataSupplier (Name, Location, Comment)>",
  "<!ELEMENT Media (Name, Table+)>",
  "<!ELEMENT Table (URL, Name, Description, UTF8, DecimalSymbol, DigitGroupingSymbol, Range, VariableLength)>",
  "<!ELEMENT Range (From)>",
  "<!ELEMENT VariableLength (ColumnDelimiter, RecordDelimiter, TextEncapsulator, VariablePrimaryKey, VariableColumn+, ForeignKey*)>",
  "<!ELEMENT VariablePrimaryKey (Name, Description, (Numeric | AlphaNumeric | Date))>",
  "<!ELEMENT VariableColumn (Name, Description, (Numeric | AlphaNumeric | Date))>",
  "<!ELEMENT ForeignKey (Name, References)>",
  "<!ELEMENT Numeric (Accuracy)>",
  "<!ELEMENT Date (Format)>",
  "<!ELEMENT AlphaNumeric EMPTY>",
  "<!ELEMENT UTF8 EMPTY>",
  ...[
    "Version",
    "Name",
    "Location",
    "Comment",
    "URL",
    "Description",
    "DecimalSymbol",
    "DigitGroupingSymbol",
    "From",
    "ColumnDelimiter",
    "RecordDelimiter",
    "TextEncapsulator",
    "References",
    "Accuracy",
    "Format"
  ].map((name) => `<!ELEMENT ${name} (#PCDATA)>`),
  ""
].join("\n")
