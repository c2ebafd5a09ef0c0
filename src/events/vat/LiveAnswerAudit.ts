/** Reports an event that claims a live answer of a source without the personal document that has the exchange with this source. */
import { Option } from "effect"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { SubjectCheck } from "#events/log/verify/SubjectCheck.ts"

export const check: SubjectCheck = {
  // A fast verification needs no other events than those with personal documents.
  types: [],
  make:
    ({ findings }) =>
    (event) => {
      if (event.type !== VatIdVerified.type || !event.data.includes('"served":"live"')) return
      if (Option.isNone(PersonalDocument.digestIn(EventLine.readData(event))))
        findings.add(event.position, "the event claims a live answer, but it has no personal document")
    }
}
