/** The bytes of requests, made before a run. */
import type { LoadPlan } from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as ResponseBytes from "#test/benchmarks/load/ResponseBytes.ts"

/** Requests of one kind, one after the other. */
export interface Supply {
  readonly kind: RequestKinds.Name
  /** Whether a response has the kind's status, and that of a live look-up is no cached one. */
  readonly accepts: (response: Buffer) => boolean
  readonly next: () => Buffer
}

const live = '"cache":false'

/** More would only fill the memory: after so many the list begins again. */
const preparedMax = 100_000
/** Clients without a key. The addresses are reserved for documentation (RFC 5737). */
const addresses = 64

export const make = (plan: LoadPlan, authority: string, name: RequestKinds.Name): Supply => {
  const { keys, newFrom, requests, vatIds, viesPath } = plan
  const { hasKey, isNew, status, target } = RequestKinds.kinds[name]

  const bytesOf = (index: number) => {
    const round = Math.floor(index / vatIds.length)
    const vatId = isNew ? RegisterIds.inTurn(newFrom + index) : (vatIds[index % vatIds.length] ?? "")
    if (viesPath !== null) return Buffer.from(viesCheck(authority, viesPath, vatId))
    // Another key, and another spelling, each time the VAT IDs begin again.
    const caller = hasKey
      ? `X-Api-Key: ${keys[(index + round) % keys.length]}`
      : `X-Forwarded-For: 198.51.100.${(index + round) % addresses}`
    return Buffer.from(`GET ${target(vatId, index + round)} HTTP/1.1\r\nHost: ${authority}\r\n${caller}\r\n\r\n`)
  }

  // No list of new VAT IDs is long enough, and live look-ups are few: each is made when it is sent.
  const length = isNew ? 0 : Math.min(requests ?? vatIds.length * keys.length, preparedMax)
  const prepared = Array.from({ length }, (_, index) => bytesOf(index))
  let index = 0
  return {
    kind: name,
    accepts: (response) =>
      ResponseBytes.statusOf(response) === status && (!isNew || viesPath !== null || response.includes(live, 0, "latin1")),
    next: () => {
      const bytes = prepared[index % length] ?? bytesOf(index)
      index += 1
      return bytes
    }
  }
}

const viesCheck = (authority: string, path: string, vatId: string) => {
  const body = JSON.stringify({ countryCode: vatId.slice(0, 2), vatNumber: vatId.slice(2) })
  const headers = `Host: ${authority}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  return `POST ${path}/check-vat-number HTTP/1.1\r\n${headers}\r\n\r\n${body}`
}
