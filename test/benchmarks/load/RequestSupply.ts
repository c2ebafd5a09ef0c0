/** Bytes of requests, prepared before a run. */
import type { LoadPlan } from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as ResponseBytes from "#test/benchmarks/load/ResponseBytes.ts"

/** Sequence of requests of one kind. */
export interface Supply {
  readonly kind: RequestKinds.Name
  /** Checks the status of a response, and that a live look-up was not answered from the cache. */
  readonly accepts: (response: Buffer) => boolean
  readonly next: () => Buffer
}

const live = '"cache":false'

/** Limit of prepared requests, which bounds their memory. The requests repeat after this number. */
const preparedMax = 100_000
/** Number of clients without a key. Their addresses are from a range for documentation (RFC 5737). */
const addresses = 64

export const make = (plan: LoadPlan, authority: string, name: RequestKinds.Name): Supply => {
  const { keys, newFrom, requests, vatIds, viesPath } = plan
  const { hasKey, isNew, status, target } = RequestKinds.kinds[name]

  const bytesOf = (index: number) => {
    const round = Math.floor(index / vatIds.length)
    const vatId = isNew ? RegisterIds.roundRobin(newFrom + index) : (vatIds[index % vatIds.length] ?? "")
    if (viesPath !== null) return Buffer.from(viesCheck(authority, viesPath, vatId))
    // Each pass over the VAT IDs uses another key and another spelling.
    const caller = hasKey
      ? `X-Api-Key: ${keys[(index + round) % keys.length]}`
      : `X-Forwarded-For: 198.51.100.${(index + round) % addresses}`
    return Buffer.from(`GET ${target(vatId, index + round)} HTTP/1.1\r\nHost: ${authority}\r\n${caller}\r\n\r\n`)
  }

  // Requests with new VAT IDs do not repeat, so each is created when it is sent. They are few.
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
