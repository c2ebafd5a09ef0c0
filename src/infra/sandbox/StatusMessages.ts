/**
 * The BZSt's status messages, as `GET /v1/info/statusmeldungen` publishes them (26 codes, read 2026-11).
 *
 * The texts are the authority's, including its typos. `evatr-0001` belongs to the web form and has no HTTP status.
 */
type Row = readonly [code: string, kategorie: string, httpcode: number | undefined, feld: string | undefined, meldung: string]

const later = "Eine Bearbeitung Ihrer Anfrage ist zurzeit nicht möglich. Bitte versuchen Sie es später noch einmal."
const target = "Die angefragte USt-IdNr. ist zum Anfragezeitpunkt"

const rows: ReadonlyArray<Row> = [
  ["0000", "Ergebnis", 200, undefined, `${target} gültig.`],
  ["0001", "Hinweis", undefined, "datenschutz", "Bitte bestätigen Sie den Datenschutzhinweis."],
  ["0002", "Hinweis", 400, "angefragteUstid", "Mindestens eins der Pflichtfelder ist nicht besetzt."],
  [
    "0003",
    "Hinweis",
    400,
    "firmenname,ort",
    `${target} gültig. Mindestens eines der Pflichtfelder für eine qualifizierte Bestätigungsanfrage ist nicht besetzt.`
  ],
  [
    "0004",
    "Fehler",
    400,
    "anfragendeUstid",
    "Die anfragende DE USt-IdNr. ist syntaktisch falsch. Sie passt nicht in das deutsche Erzeugungsschema."
  ],
  ["0005", "Fehler", 400, "angefragteUstid", "Die angegebene angefragte USt-IdNr. ist syntaktisch falsch."],
  ["0006", "Hinweis", 403, "anfragendeUstid", "Die anfragende DE USt-IdNr. ist nicht berechtigt eine DE USt-IdNr. anzufragen."],
  ["0007", "Hinweis", 403, undefined, "Fehlerhafter Aufruf."],
  [
    "0008",
    "Hinweis",
    403,
    undefined,
    "Die maximale Anzahl von qualifizierten Bestätigungsabfragen für diese Session wurde erreicht. Bitte starten Sie erneut mit einer einfachen Bestätigungsabfrage."
  ],
  ["0011", "Fehler", 503, undefined, later],
  [
    "0012",
    "Fehler",
    400,
    "angefragteUstid",
    "Die angefragte USt-IdNr. ist syntaktisch falsch. Sie passt nicht in das Erzeugungsschema."
  ],
  ["0013", "Fehler", 503, undefined, later],
  ["1001", "Fehler", 503, undefined, later],
  ["1002", "Fehler", 500, undefined, later],
  ["1003", "Fehler", 500, undefined, later],
  ["1004", "Fehler", 500, undefined, later],
  ["2001", "Hinweis", 404, "angefragteUstid", `${target} nicht vergeben.`],
  ["2002", "Hinweis", 200, "angefragteUstid", `${target} nicht gültig. Sie ist erst gültig ab dem Datum im Feld gueltigAb.`],
  ["2003", "Fehler", 400, "angefragteUstid", "Das angegebene Länderkennzeichen der angefragten USt-IdNr. ist nicht gültig."],
  ["2004", "Fehler", 500, undefined, later],
  ["2005", "Fehler", 404, "anfragendeUstid", "Die angegebene eigene DE USt-IdNr. ist zum Anfragezeitpunkt nicht gültig."],
  [
    "2006",
    "Hinweis",
    200,
    "angefragteUstid",
    `${target} nicht gültig. Sie war gültig im Zeitraum, der durch die Werte in den Feldern gueltigAb und gueltigBis beschrieben ist.`
  ],
  [
    "2007",
    "Fehler",
    500,
    undefined,
    "Bei der Verarbeitung der Daten aus dem angefragten EU-Mitgliedstaat ist ein Fehler aufgetreten. Ihre Anfrage kann deshalb nicht bearbeitet werden."
  ],
  [
    "2008",
    "Hinweis",
    200,
    undefined,
    `${target} gültig. Für die qualifizierte Bestätigungsanfrage liegt einer Besonderheit vor. Für Rückfragen wenden Sie sich an das BZSt.`
  ],
  ["2011", "Fehler", 500, undefined, later],
  ["3011", "Fehler", 500, undefined, later]
]

/** The published list. A field that a message lacks is undefined, so its JSON has no such field. */
export const statusMessages = rows.map(([code, kategorie, httpcode, feld, meldung]) => ({
  status: `evatr-${code}`,
  kategorie,
  httpcode,
  feld,
  meldung
}))

/** Returns the HTTP status of an answer with this `evatr` status; 400 for an unknown one. */
export const httpStatusOf = (status: string): number => httpStatuses.get(status) ?? 400

const httpStatuses = new Map(statusMessages.map(({ httpcode, status }) => [status, httpcode]))
