/** Writes the README of an export in German and English: the files, how to verify them, and what the verification proves. */
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { type ExportCatalogue, personalFolder } from "#events/log/export/ExportTable.ts"
import type { ExportManifest } from "#events/log/export/ExportManifest.ts"
import { doctypeFile, indexFile } from "#events/log/export/MediaDescription.ts"

/** File names in an export. */
export const exportFiles = {
  readme: "README.txt",
  manifest: "manifest.json",
  events: "events.ndjson",
  leaves: "leaves.txt",
  checkpoint: "checkpoint",
  verifier: "verifier-key.txt",
  proofs: "proofs",
  documents: `${personalFolder}/documents.txt`
} as const

const listOf = (lines: ReadonlyArray<readonly [string, string]>) =>
  lines.map(([file, what]) => `  ${file.padEnd(24)} ${what}`).join("\n")

type Catalogue = ExportCatalogue["Service"]

const german = ({ proved, references, tables }: Catalogue, manifest: ExportManifest) => `EXPORT DES PRÜFPROTOKOLLS ${manifest.log}

Positionen ${manifest.from} bis ${manifest.to - 1} (${manifest.to - manifest.from} Ereignisse) von ${manifest.size} signierten.
Nicht enthalten: ${manifest.from} frühere und ${manifest.size - manifest.to} spätere Ereignisse.
Zeitraum: ${manifest.recorded_from ?? "von Anfang an"} (einschließlich) bis ${manifest.recorded_before ?? "zum letzten signierten"} (ausschließlich).
Erstellt ${manifest.exported_at}.

${listOf([
  [indexFile, "Beschreibung der Tabellen für die Datenträgerüberlassung (GoBD)"],
  [doctypeFile, "Dokumenttyp dazu"],
  ...tables.map(({ description, file }) => [file, description] as const),
  [exportFiles.events, "alle Ereignisse vollständig, je Zeile eines (JSON nach RFC 8785)"],
  [`${proved.folder}/*.json`, proved.german],
  [`${exportFiles.proofs}/*.tlog-proof`, "der Nachweis zu jedem Beleg, für sich allein prüfbar"],
  [`${references.folder}/*.json`, references.german],
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

const english = ({ proved, references }: Catalogue, manifest: ExportManifest) => `EXPORT OF THE AUDIT LOG ${manifest.log}

Positions ${manifest.from} to ${manifest.to - 1} (${manifest.to - manifest.from} events) of ${manifest.size} signed events.
Left out: ${manifest.from} earlier and ${manifest.size - manifest.to} later events.
Period: ${manifest.recorded_from ?? "from the beginning of the log"} (inclusive) to ${manifest.recorded_before ?? "the last signed event"} (exclusive).
Exported at ${manifest.exported_at}.

${listOf([
  [indexFile, "describes the tables to the tax authorities' programs (GoBD)"],
  [doctypeFile, "the document type of index.xml"],
  ["*.csv", "the tables: all events, simple validations, qualified confirmations, API keys, plans"],
  [`${personalFolder}/personal.csv`, "names, addresses, references and the exact exchange with the source"],
  [exportFiles.events, "all events in full, one per line (JSON as RFC 8785 writes it)"],
  [`${proved.folder}/*.json`, proved.english],
  [`${exportFiles.proofs}/*.tlog-proof`, "the proof of each receipt, which can be verified alone (c2sp.org/tlog-proof)"],
  [`${references.folder}/*.json`, references.english],
  [`${exportFiles.proofs}/edge-*`, "proofs that the events before and after the exported positions are outside of the period"],
  [exportFiles.checkpoint, "the signed state of the log (c2sp.org/tlog-checkpoint)"],
  [exportFiles.leaves, "position and leaf hash (RFC 6962), one per line"],
  [exportFiles.documents, "position and personal document (JSON), or the word erased, one per line"],
  [exportFiles.manifest, "the exported positions, and the hashes of the other positions"],
  [exportFiles.verifier, "the public key; trust it only if you know it from elsewhere too"]
])}

VERIFY: npm run vatproof -- audit verify --export <folder> --key <public key>
recomputes everything and prints the position of each entry that differs from the signed one.

A leaf hash is SHA-256(0x00 || text). The text is the event as canonical JSON, with data_sha256 and metadata_sha256 in place of data
and metadata. These are the SHA-256 of the canonical JSON of data and of metadata.

TABLES: a text that begins like a formula (=, +, -, @, tab, carriage return, also after white space) starts with an apostrophe (') in the tables, so that no
spreadsheet runs it. Control characters are replaced by spaces. ${exportFiles.events} and ${exportFiles.documents} have the text unchanged. ${doctypeFile} has
only the elements that ${indexFile} uses. To use the complete document type of the tax authorities (gdpdu-01-09-2004.dtd), put it into the folder and name
it in the second line of a copy of ${indexFile}: the copy is valid, too.

PERSONAL DATA is only in the folder ${personalFolder}. If you delete the folder, the rest of the export can still be verified.
A document is genuine if its SHA-256 equals personal_sha256 in its event.

This proves that no event of this export was changed, removed, inserted or swapped after it was signed.
It does not prove that the answers of the sources are right.
`

const sandboxMark = `SANDBOX: KEIN NACHWEIS. Alle Antworten in diesem Export sind simuliert; es wurde keine Behörde gefragt.
SANDBOX: NO EVIDENCE. All answers in this export are simulated; no authority was asked.

`

export const readmeOf = (catalogue: Catalogue, manifest: ExportManifest): string =>
  `${purposeIn(manifest.log) === "sandbox" ? sandboxMark : ""}${german(catalogue, manifest)}\n\n${english(catalogue, manifest)}`
