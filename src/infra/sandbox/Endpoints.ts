/** The endpoints of both simulated sources, at the paths of the real sources. */
import type { SourceName } from "#domain/vat/Verdict.ts"
import * as Bzst from "#infra/sandbox/BzstSimulator.ts"
import type { Settings } from "#infra/sandbox/Settings.ts"
import type { Question, Reply, Stamp } from "#infra/sandbox/Simulator.ts"
import * as Vies from "#infra/sandbox/ViesSimulator.ts"

/** Path of VIES' interface, as on ec.europa.eu. */
export const viesPath = "/taxation_customs/vies/rest-api"
/** Path of BZSt's interface, as on api.evatr.vies.bzst.de. */
export const bzstPath = "/app"

/**
 * An endpoint of a simulated source. A `Check` validates a VAT ID: `read` parses the request. A `Probe` reports the state of the
 * source: `error` returns the answer for an error code that a user has scripted. The `TestService` answers from a fixed table and
 * ignores scripted faults.
 */
export type Endpoint =
  | { readonly _tag: "Check"; readonly source: SourceName; readonly read: (body: string, settings: Settings) => Question }
  | {
      readonly _tag: "Probe"
      readonly source: SourceName
      readonly answer: (stamp: Stamp, settings: Settings) => Reply
      readonly error: (stamp: Stamp, code: string) => Reply
    }
  | { readonly _tag: "TestService"; readonly source: SourceName; readonly answer: (body: string, stamp: Stamp) => Reply }

const bzstProbe = (answer: (settings: Settings) => Reply): Endpoint => ({
  _tag: "Probe",
  source: "bzst",
  answer: (stamp, settings) => (settings.bzst_available ? answer(settings) : Bzst.statusReply("evatr-0011", stamp)),
  error: (stamp, code) => Bzst.statusReply(code, stamp)
})

/** The endpoints by method and path, e.g. `POST /app/v1/abfrage`. */
export const endpoints: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  [`POST ${viesPath}/check-vat-number`, { _tag: "Check", source: "vies", read: Vies.readCheck }],
  [`POST ${viesPath}/check-vat-test-service`, { _tag: "TestService", source: "vies", answer: Vies.answerTestService }],
  [
    `GET ${viesPath}/check-status`,
    {
      _tag: "Probe",
      source: "vies",
      answer: (_, settings) => Vies.answerStatus(settings),
      error: (_, code) => Vies.errorReply(code)
    }
  ],
  [
    `POST ${bzstPath}/v1/abfrage`,
    {
      _tag: "Check",
      source: "bzst",
      read: Bzst.readQuery
    }
  ],
  [`GET ${bzstPath}/v1/info/eu_mitgliedstaaten`, bzstProbe(Bzst.answerMemberStates)],
  [`GET ${bzstPath}/v1/info/statusmeldungen`, bzstProbe(Bzst.answerMessages)]
])
