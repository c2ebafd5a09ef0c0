/** A receipt in German. */
import type { ReceiptText } from "#domain/receipts/document/ReceiptText.ts"

export const receiptInGerman: ReceiptText = {
  title: "Beleg über eine qualifizierte Bestätigungsanfrage",
  sandbox: {
    title: "SANDBOX: KEIN NACHWEIS",
    text: "Dieser Beleg ist simuliert. Es wurde keine Behörde gefragt, und der Beleg beweist nichts."
  },
  law: "Umsatzsteuer-Identifikationsnummer, §\u00A018e UStG",
  page: ["Seite", "von"],
  months: ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"],
  date: (day, month, year) => `${day}.\u00A0${month} ${year}`,
  moment: (date, clock) => `${date}, ${clock.replace(".", ",")} Uhr (UTC)`,
  headline: (vatId, valid) => `${vatId} war ${valid ? "gültig" : "nicht gültig"}`,
  compared: ({ mismatches, supplied, uncompared }) => {
    if (supplied === 0) return "Firmendaten: Es wurden keine angegeben."
    const suppliedFields = (count: number) => (supplied === 1 ? "Die Angabe" : `${count} von ${supplied} Angaben`)
    if (mismatches + uncompared === 0) {
      return `Firmendaten: ${suppliedFields(supplied)} ${supplied === 1 ? "stimmt" : "stimmen"} mit dem Register überein.`
    }
    const findings = [
      ...(mismatches === 0
        ? []
        : [`${suppliedFields(mismatches)} ${mismatches === 1 ? "stimmt" : "stimmen"} nicht mit dem Register überein`]),
      ...(uncompared === 0 ? [] : [`${suppliedFields(uncompared)} ${uncompared === 1 ? "wurde" : "wurden"} nicht verglichen`])
    ]
    return `Firmendaten: ${findings.join(", ")}.`
  },
  answered: (moment) => `So hat das Bundeszentralamt für Steuern (BZSt) am ${moment} geantwortet.`,
  notOfTheAuthority: "Diesen Beleg stellt der Dienst aus, der angefragt hat, nicht die Finanzverwaltung.",
  valid: (valid) => (valid ? "gültig" : "nicht gültig"),
  statuses: {
    "evatr-0000": () => "Die USt-IdNr. ist gültig.",
    "evatr-0003": () =>
      "Die USt-IdNr. ist gültig. Nur das wurde beantwortet: Das BZSt vergleicht Firmendaten nur, wenn Firmenname und Ort angegeben sind.",
    "evatr-2001": () => "Die USt-IdNr. ist nicht vergeben.",
    "evatr-2002": ({ from }) => `Die USt-IdNr. ist noch nicht gültig${from === null ? "" : `: Sie wird am ${from} gültig`}.`,
    "evatr-2006": ({ from, until }) =>
      `Die USt-IdNr. ist nicht mehr gültig${from === null || until === null ? "" : `: Sie war vom ${from} bis zum ${until} gültig`}.`,
    "evatr-2008": () => "Die USt-IdNr. ist gültig. Das BZSt kann Firmendaten in diesem besonderen Fall nicht vergleichen."
  },
  matches: {
    match: { name: "stimmt überein", meaning: "Die Angabe stimmt mit dem Register überein." },
    mismatch: {
      name: "stimmt nicht überein",
      meaning: "Die Angabe stimmt nicht mit dem Register überein. Die USt-IdNr. kann dennoch gültig sein."
    },
    not_queried: { name: "nicht angefragt", meaning: "Es wurde nichts angegeben und deshalb nichts verglichen." },
    not_provided: {
      name: "nicht mitgeteilt",
      meaning: "Es wurde etwas angegeben, aber die Finanzverwaltung hat kein Ergebnis mitgeteilt."
    }
  },
  fields: { company_name: "Firmenname", company_street: "Straße", company_zip: "Postleitzahl", company_city: "Ort" },
  notSupplied: "nicht angegeben",
  notDisclosed: "nicht bekannt: keine Quelle hat Angaben offengelegt",
  none: "keine",
  issuedBy: (source) => `${source} (dieser Dienst)`,
  milliseconds: (count) => `${count} ms`,
  more: (characters) => `… und ${characters} weitere Zeichen, die in der beigefügten Datei stehen`,
  headings: {
    confirmation: "Die Bestätigung",
    comparison: "Firmendaten im Vergleich mit dem Register",
    official: "Eingetragener Name und Anschrift",
    proves: "Was dieser Beleg beweist",
    provesNot: "Was er nicht beweist",
    exchange: "Der Austausch mit dem BZSt",
    record: "Die Aufzeichnung",
    verify: "So lässt er sich prüfen"
  },
  columns: ["Feld", "Angabe", "Ergebnis"],
  paragraphs: {
    comparison: "Die Ergebnisse stammen vom BZSt. Sie bedeuten:",
    official:
      "Nach der neuesten früheren Auskunft des VIES der EU. Das BZSt legt beides nicht offen; es ist nicht Teil seiner Antwort.",
    exchange:
      "Dies sind die Bytes, die dieser Dienst gesendet und empfangen hat. Nicht darstellbare Zeichen sind als [U+…] geschrieben.",
    record: "Wo der Beleg im nur fortschreibbaren Protokoll dieses Dienstes steht und wem er gehört."
  },
  labels: {
    receiptId: "Beleg",
    issuedAt: "Ausgestellt",
    issuedBy: "Aussteller",
    target: "Angefragte USt-IdNr.",
    requester: "USt-IdNr. des Anfragenden",
    reference: "Referenz des Anfragenden",
    result: "Ergebnis",
    status: "Status des BZSt",
    statusMeaning: "Bedeutung des Status",
    validFrom: "Gültig ab",
    validUntil: "Gültig bis",
    answeredAt: "Beantwortet (Uhr des BZSt)",
    requestId: "Nummer der Anfrage beim BZSt",
    officialName: "Name",
    officialAddress: "Anschrift",
    askedAt: "Angefragt (Uhr dieses Dienstes)",
    duration: "Beantwortet nach",
    httpStatus: "HTTP-Status der Antwort",
    sha256: "SHA-256 der Antwort",
    request: "Frage",
    response: "Antwort",
    position: "Position im Protokoll",
    recordedAt: "Aufgezeichnet (Uhr der Datenbank)",
    eventId: "Ereignis",
    account: "Konto",
    key: "API-Schlüssel",
    attachments: "Die Dateien im Wortlaut"
  },
  proves: (position) => [
    "Dieser Dienst hat aufgezeichnet, dass er dem BZSt die unten abgedruckte Frage gestellt und die unten abgedruckte Antwort erhalten hat, bevor er irgendjemandem das Ergebnis mitgeteilt hat.",
    `Die Aufzeichnung steht an Position ${position} eines nur fortschreibbaren Protokolls. Mit ihrem Nachweis oder mit einem späteren signierten Prüfpunkt, der außerhalb dieses Dienstes aufbewahrt wurde, kann jeder zeigen, dass sie seither nicht geändert, verschoben oder entfernt wurde.`
  ],
  provesNot: [
    "Er ist keine Urkunde des BZSt oder einer anderen Behörde: Keine hat ihn ausgestellt, unterschrieben oder gesehen. Dass die Antwort vom BZSt stammt, sagt dieser Dienst.",
    "Seine Zeit ist die dieses Dienstes. Nur ein Zeuge, der einen Prüfpunkt des Protokolls gegengezeichnet hat, beweist, dass er nicht jünger ist; und wo niemand einen Nachweis oder Prüfpunkt aufbewahrt hat, könnte der Betreiber, der den Signaturschlüssel hat, ein anderes Protokoll signieren.",
    "Er gilt für den Zeitpunkt der Antwort. Eine USt-IdNr. kann am nächsten Tag ungültig werden.",
    "Eine Übereinstimmung sagt nicht, wer die USt-IdNr. bei einem Geschäft verwendet hat und ob er dazu berechtigt war.",
    "Ob er in einer Steuersache als Nachweis genügt, entscheidet das Finanzamt."
  ],
  verify: (receiptId) => [
    {
      text: "Den Nachweis mit einem API-Schlüssel oder dem Zugang eines Prüfers abrufen; „…“ steht für den Schlüssel und für die Adresse dieses Dienstes. Er enthält das aufgezeichnete Ereignis mit allem, was hier abgedruckt ist, seinen Pfad zu einem signierten Prüfpunkt und den Prüfpunkt.",
      command: `curl -H "X-Api-Key: …" -H "Accept: application/json" -o proof.json \\\n  …/v1/audit/proofs/${receiptId}`
    },
    {
      text: "Ihn ohne Netz prüfen. Den öffentlichen Schlüssel des Protokolls auf einem anderen Weg als den Nachweis vom Betreiber holen.",
      command: "npm run vatproof -- audit verify --proof proof.json --key …"
    },
    {
      text: "Jedes andere Werkzeug für C2SP tlog-proof (Bäume nach RFC 6962, mit Ed25519 signierte Notizen) kommt zum selben Ergebnis.",
      command: null
    },
    {
      text: "Die SHA-256 der beigefügten Antwort mit der unten angegebenen vergleichen.",
      command: `sha256sum ${receiptId}-answer.json`
    }
  ],
  attachments: {
    receipt: "Der Beleg, wie ihn die Schnittstelle liefert",
    request: "Die Frage, wie sie gesendet wurde",
    response: "Die Antwort, wie sie empfangen wurde"
  }
}
