/** A receipt in English. */
import type { ReceiptText } from "#domain/receipts/document/ReceiptText.ts"

export const receiptInEnglish: ReceiptText = {
  title: "Receipt of a qualified VAT ID confirmation",
  sandbox: {
    title: "SANDBOX: NO EVIDENCE",
    text: "This receipt is simulated. No tax authority was asked, and the receipt proves nothing."
  },
  law: "VAT identification number, §\u00A018e of the German VAT Act (UStG)",
  page: ["Page", "of"],
  months: [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December"
  ],
  date: (day, month, year) => `${day}\u00A0${month} ${year}`,
  moment: (date, clock) => `${date}, ${clock} UTC`,
  headline: (vatId, valid) => `${vatId} was ${valid ? "valid" : "not valid"}`,
  compared: ({ mismatches, supplied, uncompared }) => {
    if (supplied === 0) return "Company data: none was supplied."
    const suppliedFields = (count: number) => (supplied === 1 ? "the supplied field" : `${count} of ${supplied} supplied fields`)
    if (mismatches + uncompared === 0) {
      return `Company data: ${suppliedFields(supplied)} ${supplied === 1 ? "matches" : "match"} the register.`
    }
    const findings = [
      ...(mismatches === 0 ? [] : [`${suppliedFields(mismatches)} ${mismatches === 1 ? "does" : "do"} not match the register`]),
      ...(uncompared === 0 ? [] : [`${suppliedFields(uncompared)} ${uncompared === 1 ? "was" : "were"} not compared`])
    ]
    return `Company data: ${findings.join(", ")}.`
  },
  answered: (moment) => `This is the answer of the German Federal Central Tax Office (BZSt), received on ${moment}.`,
  notOfTheAuthority: "This receipt is issued by the service that asked, not by the tax authority.",
  valid: (valid) => (valid ? "valid" : "not valid"),
  statuses: {
    "evatr-0000": () => "The VAT ID is valid.",
    "evatr-0003": () =>
      "The VAT ID is valid. Company data was not compared: the BZSt compares company data only if both the name and the city are supplied.",
    "evatr-2001": () => "The VAT ID is not assigned.",
    "evatr-2002": ({ from }) => `The VAT ID is not valid yet${from === null ? "" : `: it becomes valid on ${from}`}.`,
    "evatr-2006": ({ from, until }) =>
      `The VAT ID is no longer valid${from === null || until === null ? "" : `: it was valid from ${from} to ${until}`}.`,
    "evatr-2008": () => "The VAT ID is valid. The BZSt cannot compare company data in this special case."
  },
  matches: {
    match: { name: "match", meaning: "The supplied text matches the register." },
    mismatch: {
      name: "mismatch",
      meaning: "The supplied text does not match the register. The VAT ID can still be valid."
    },
    not_queried: { name: "not queried", meaning: "Nothing was supplied, so nothing was compared." },
    not_provided: { name: "not provided", meaning: "A text was supplied, but the tax authority returned no result for it." }
  },
  fields: { company_name: "Name", company_street: "Street", company_zip: "Postal code", company_city: "City" },
  notSupplied: "not supplied",
  notDisclosed: "unknown: no source has disclosed it",
  none: "none",
  issuedBy: (source) => `${source} (this service)`,
  milliseconds: (count) => `${count} ms`,
  more: (characters) => `… and ${characters} more characters, which are in the attached file`,
  headings: {
    confirmation: "The confirmation",
    comparison: "Company data, compared with the register",
    official: "Registered name and address",
    proves: "What this receipt proves",
    provesNot: "What it does not prove",
    exchange: "The exchange with the BZSt",
    record: "The record",
    verify: "How to verify it"
  },
  columns: ["Field", "Supplied", "Result"],
  paragraphs: {
    comparison: "The results are the BZSt’s. They mean:",
    official: "From the newest earlier answer of the EU’s VIES. The BZSt discloses neither name nor address.",
    exchange: "These are the bytes that this service sent and received. Characters that cannot be shown are written as [U+…].",
    record: "The receipt's position in the append-only log of this service, and its owner."
  },
  labels: {
    receiptId: "Receipt",
    issuedAt: "Issued",
    issuedBy: "Issued by",
    target: "Queried VAT ID",
    requester: "VAT ID of the requester",
    reference: "Reference of the requester",
    result: "Result",
    status: "Status of the BZSt",
    statusMeaning: "Meaning of the status",
    validFrom: "Valid from",
    validUntil: "Valid until",
    answeredAt: "Answered (clock of the BZSt)",
    requestId: "Request id of the BZSt",
    officialName: "Name",
    officialAddress: "Address",
    askedAt: "Asked (clock of this service)",
    duration: "Answered after",
    httpStatus: "HTTP status of the answer",
    sha256: "SHA-256 of the answer",
    request: "Question",
    response: "Answer",
    position: "Position in the log",
    recordedAt: "Recorded (clock of the database)",
    eventId: "Event",
    account: "Account",
    key: "API key",
    attachments: "Exact files"
  },
  proves: (position) => [
    "This service recorded that it sent the question printed below to the BZSt and received the answer printed below, before it returned the result.",
    `The record has position ${position} in an append-only log. Its proof, or any later signed checkpoint kept outside of this service, shows that it was not changed, moved or removed since.`
  ],
  provesNot: [
    "It is not a document of the BZSt or of any other authority: no authority has issued, signed or seen it. This service alone states that the answer came from the BZSt.",
    "Its time comes from this service. Only a witness that cosigned a checkpoint of the log proves that the receipt is not younger than the checkpoint. If no proof or checkpoint was kept elsewhere, the operator, who has the signing key, could sign another log.",
    "It applies to the moment of the answer. A VAT ID can be withdrawn the next day.",
    "A match does not show who used the VAT ID in a transaction, or whether that person was entitled to do so.",
    "The tax office decides whether it suffices as evidence in a tax matter."
  ],
  verify: (receiptId) => [
    {
      text: "Save the proof, with an API key or an auditor’s token; “…” stands for the key and for the address of this service. It holds the recorded event with everything that is printed here, the event’s path to a signed checkpoint, and the checkpoint.",
      command: `curl -H "X-Api-Key: …" -H "Accept: application/json" -o proof.json \\\n  …/v1/audit/proofs/${receiptId}`
    },
    {
      text: "Check it offline. Ask the operator for the log’s public key by another way than the proof.",
      command: "npm run vatproof -- audit verify --proof proof.json --key …"
    },
    {
      text: "Any other tool for C2SP tlog-proof (RFC 6962 trees, Ed25519 signed notes) comes to the same result.",
      command: null
    },
    {
      text: "Compare the SHA-256 of the attached answer with the one below.",
      command: `sha256sum ${receiptId}-answer.json`
    }
  ],
  attachments: {
    receipt: "The receipt, as the interface gives it",
    request: "The question, as it was sent",
    response: "The answer, as it was received"
  }
}
