/** Recorded answers of the live sources, reduced to the fields that matter. */

/** VIES, 2026-10-03, for CZ45274649. */
export const viesAnswer = {
  countryCode: "CZ",
  vatNumber: "45274649",
  requestDate: "2026-10-03T21:02:05.698Z",
  valid: true,
  requestIdentifier: "",
  name: "ČEZ, a. s.",
  address: "Duhová 1444/2\nPRAHA 4 - MICHLE\n140 00  PRAHA 4",
  traderName: "---",
  traderNameMatch: "NOT_PROCESSED"
}

/** VIES' envelope of an error, 2025-06-03. */
export const viesError = (code: string) => ({ actionSucceed: false, errorWrappers: [{ error: code }] })

/** The BZSt, 2025-09-22, to a qualified confirmation. */
export const bzstAnswer = {
  id: "5b1f4b5f03c27585",
  anfrageZeitpunkt: "2025-09-22T18:33:04.564553064+02:00",
  status: "evatr-0000",
  ergFirmenname: "A",
  ergStrasse: "A",
  ergPlz: "A",
  ergOrt: "A"
}

/** The BZSt's answer to a plain validation. */
export const bzstStatus = (status: string, more: object = {}) => ({
  id: bzstAnswer.id,
  anfrageZeitpunkt: bzstAnswer.anfrageZeitpunkt,
  status,
  ...more
})
