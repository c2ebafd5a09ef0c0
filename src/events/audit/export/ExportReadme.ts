/** The README of an export, in German and English: its files and how to verify them. */
import { exportTables, personalFolder } from "#events/audit/export/ExportTable.ts"
import type { ExportManifest } from "#events/audit/export/ExportManifest.ts"
import { doctypeFile, indexFile } from "#events/audit/export/MediaDescription.ts"

/** File names in an export. */
export const exportFiles = {
  readme: "README.txt",
  manifest: "manifest.json",
  events: "events.ndjson",
  leaves: "leaves.txt",
  checkpoint: "checkpoint",
  verifier: "verifier-key.txt",
  receipts: "receipts",
  proofs: "proofs",
  keys: "keys",
  documents: `${personalFolder}/documents.txt`
} as const

const listOf = (lines: ReadonlyArray<readonly [string, string]>) =>
  lines.map(([file, what]) => `  ${file.padEnd(24)} ${what}`).join("\n")

const german = (manifest: ExportManifest) => `EXPORT DES PRÜFPROTOKOLLS ${manifest.log}

Positionen ${manifest.from} bis ${manifest.to - 1} (${manifest.to - manifest.from} Ereignisse) von ${manifest.size} signierten.
Nicht enthalten: ${manifest.from} frühere und ${manifest.size - manifest.to} spätere Ereignisse.
Zeitraum: ${manifest.recorded_from ?? "von Anfang an"} (einschließlich) bis ${manifest.recorded_before ?? "zum letzten signierten"} (ausschließlich).
Erstellt ${manifest.exported_at}.

${listOf([
  [indexFile, "Beschreibung der Tabellen für die Datenträgerüberlassung (GoBD)"],
  [doctypeFile, "Dokumenttyp dazu"],
  ...exportTables.map(({ description, file }) => [file, description] as const),
  [exportFiles.events, "alle Ereignisse vollständig, je Zeile eines (JSON nach RFC 8785)"],
  [`${exportFiles.receipts}/*.json`, "jeder Beleg als Ereignis, wie in events.ndjson"],
  [`${exportFiles.proofs}/*.tlog-proof`, "der Nachweis zu jedem Beleg, für sich allein prüfbar"],
  [`${exportFiles.keys}/*.json`, "zu jedem genannten API-Schlüssel seine Ausstellung; der Nachweis ist proofs/key-*.tlog-proof"],
  [`${exportFiles.proofs}/edge-*`, "Nachweise, dass die Ereignisse neben dem Umfang außerhalb des Zeitraums liegen"],
  [exportFiles.checkpoint, "der signierte Stand des Protokolls"],
  [exportFiles.leaves, "je Zeile Position und Prüfsumme (Blatt des Hash-Baums)"],
  [exportFiles.documents, "je Zeile Position und personenbezogenes Dokument (JSON), oder dass es gelöscht ist"],
  [exportFiles.manifest, "Umfang, und die Prüfsummen der nicht exportierten Positionen"],
  [exportFiles.verifier, "der öffentliche Schlüssel; verlassen Sie sich nur auf einen, den Sie auch anderswoher kennen"]
])}

PRÜFEN: npm run vatproof -- audit verify --export <Ordner> --key <öffentlicher Schlüssel>
rechnet alles nach und nennt die Position jedes Eintrags, der nicht der signierte ist.

TABELLEN: Beginnt ein Text wie eine Formel (=, +, -, @, Tabulator, Wagenrücklauf, auch nach Leerzeichen), so steht in den Tabellen ein Apostroph (')
davor, damit eine Tabellenkalkulation ihn nicht ausführt. Steuerzeichen sind durch Leerzeichen ersetzt. Unverändert steht er in ${exportFiles.events} und
${exportFiles.documents}. ${doctypeFile} enthält nur, was ${indexFile} benutzt; wer den ganzen Dokumenttyp der Finanzverwaltung (gdpdu-01-09-2004.dtd)
braucht, legt ihn daneben und nennt ihn in der zweiten Zeile einer Kopie von ${indexFile}: sie ist auch danach gültig.

PERSONENBEZOGENE DATEN stehen nur im Ordner ${personalFolder}. Wird er gelöscht, bleibt der Rest des Exports prüfbar.
Ein Dokument ist echt, wenn seine SHA-256 als personal_sha256 im Ereignis steht.

Was das beweist: Kein Ereignis im Umfang dieses Exports wurde nach der Signatur geändert, entfernt, eingefügt oder vertauscht.
Was es nicht beweist: dass die Angaben der Quellen richtig sind.
`

const english = (manifest: ExportManifest) => `EXPORT OF THE AUDIT LOG ${manifest.log}

Positions ${manifest.from} to ${manifest.to - 1} (${manifest.to - manifest.from} events) of ${manifest.size} signed ones.
Left out: ${manifest.from} earlier and ${manifest.size - manifest.to} later events.
Period: ${manifest.recorded_from ?? "from the beginning"} (included) to ${manifest.recorded_before ?? "the last signed one"} (not included).
Made ${manifest.exported_at}.

${listOf([
  [indexFile, "describes the tables to the tax authorities' programs (GoBD)"],
  [doctypeFile, "its document type"],
  ["*.csv", "the tables: all events, simple validations, qualified confirmations, API keys, plans"],
  [`${personalFolder}/personal.csv`, "names, addresses, references and the exact exchange with the source"],
  [exportFiles.events, "all events, whole, one a line (JSON as RFC 8785 writes it)"],
  [`${exportFiles.receipts}/*.json`, "each receipt as its event, as in events.ndjson"],
  [`${exportFiles.proofs}/*.tlog-proof`, "the proof of each receipt, which stands alone (c2sp.org/tlog-proof)"],
  [`${exportFiles.keys}/*.json`, "the event that issued each API key named here; its proof is proofs/key-*.tlog-proof"],
  [`${exportFiles.proofs}/edge-*`, "prove that the events next to the extent lie outside of the period"],
  [exportFiles.checkpoint, "the signed state of the log (c2sp.org/tlog-checkpoint)"],
  [exportFiles.leaves, "position and leaf hash (RFC 6962), one a line"],
  [exportFiles.documents, "position and personal document (JSON), one a line, or that it is erased"],
  [exportFiles.manifest, "the extent, and the hashes of the positions that are not exported"],
  [exportFiles.verifier, "the public key; trust it only if you know it from elsewhere too"]
])}

CHECK IT: npm run vatproof -- audit verify --export <folder> --key <public key>
computes everything again and names the position of each entry that is not the signed one.

A leaf is SHA-256(0x00 || text), where text is the event as canonical JSON without data and metadata, but with data_sha256 and
metadata_sha256 in their places: the SHA-256 of their canonical JSON.

TABLES: text that begins like a formula (=, +, -, @, tab, carriage return, also after white space) has an apostrophe (') in front in the tables, so that no
spreadsheet runs it. Control characters are replaced by spaces. ${exportFiles.events} and ${exportFiles.documents} have the text unchanged. ${doctypeFile} has
what ${indexFile} uses; where the tax authorities' whole document type (gdpdu-01-09-2004.dtd) is wanted, put it beside and name it in the second line of a
copy of ${indexFile}, which is valid by it too.

PERSONAL DATA is in the folder ${personalFolder} alone. Delete it, and the rest of the export stays verifiable.
A document is genuine if its SHA-256 equals personal_sha256 of its event.

What this proves: no event in the extent of this export was changed, removed, inserted or swapped after it was signed.
What it does not prove: that what the sources said is right.
`

export const readmeOf = (manifest: ExportManifest): string => `${german(manifest)}\n\n${english(manifest)}`
