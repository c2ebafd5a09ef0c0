/** Recorded answers of the live sources, reduced to the fields that matter. */
import { Layer } from "effect"
import { TestClock } from "effect/testing"

/** The answer of VIES about CZ45274649, recorded 2026-10-03. */
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

/** Sets the test clock to the time of a recording, because an answer of another day is malformed. */
const clockAt = (time: string) => Layer.effectDiscard(TestClock.setTime(Date.parse(time)))
export const viesClock = clockAt(viesAnswer.requestDate)

/** Returns an error of VIES, as recorded 2025-06-03. */
export const viesError = (code: string) => ({ actionSucceed: false, errorWrappers: [{ error: code }] })

/** The answer of the BZSt to a qualified query, recorded 2025-09-22. */
export const bzstAnswer = {
  id: "5b1f4b5f03c27585",
  anfrageZeitpunkt: "2025-09-22T18:33:04.564553064+02:00",
  status: "evatr-0000",
  ergFirmenname: "A",
  ergStrasse: "A",
  ergPlz: "A",
  ergOrt: "A"
}

export const bzstClock = clockAt(bzstAnswer.anfrageZeitpunkt)

/** Returns an answer of the BZSt to a plain query. */
export const bzstStatus = (status: string, more: object = {}) => ({
  id: bzstAnswer.id,
  anfrageZeitpunkt: bzstAnswer.anfrageZeitpunkt,
  status,
  ...more
})
