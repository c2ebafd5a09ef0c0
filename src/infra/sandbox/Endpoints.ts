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
 * An endpoint of a simulated source. `read` parses the request and the settings. With `isProbe`, the endpoint reports the state of the
 * source, and without it, the endpoint validates a VAT ID.
 */
export interface Endpoint {
  readonly source: SourceName
  readonly isProbe: boolean
  readonly read: (body: string, settings: Settings) => Question
}

const check = (source: SourceName, read: Endpoint["read"]): Endpoint => ({ source, isProbe: false, read })

/** `state` returns the answer for the settings, and `error` the answer for an error code that a user has scripted. */
const probe = (
  source: SourceName,
  state: (settings: Settings) => Reply,
  error: (code: string, stamp: Stamp) => Reply
): Endpoint => ({
  source,
  isProbe: true,
  read: (_, settings) => ({
    target: null,
    requester: null,
    vatId: undefined,
    isAccepted: true,
    answer: (stamp, code) => (code === undefined ? state(settings) : error(code, stamp))
  })
})

/** The endpoints by method and path, e.g. `POST /app/v1/abfrage`. */
export const endpoints: ReadonlyMap<string, Endpoint> = new Map([
  [`POST ${viesPath}/check-vat-number`, check("vies", Vies.readCheck)],
  [`GET ${viesPath}/check-status`, probe("vies", Vies.answerStatus, Vies.errorReply)],
  [`POST ${bzstPath}/v1/abfrage`, check("bzst", Bzst.readQuery)],
  [`GET ${bzstPath}/v1/info/eu_mitgliedstaaten`, probe("bzst", Bzst.answerMemberStates, Bzst.statusReply)],
  [`GET ${bzstPath}/v1/info/statusmeldungen`, probe("bzst", Bzst.answerMessages, Bzst.statusReply)]
])
