/** Bytes of requests, prepared before a run. */
import type { LoadPlan } from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as ResponseBytes from "#test/benchmarks/load/ResponseBytes.ts"

/** Sequence of requests of one kind. */
export interface Supply {
  readonly kind: RequestKinds.Name
  /** Checks the status of a response, and the text that it must contain. */
  readonly accepts: (response: Buffer) => boolean
  readonly next: () => Buffer
}

/** Limit of prepared requests, which bounds their memory. The requests repeat after this number. */
const preparedMax = 100_000
/** Number of clients without a key. Their addresses are from a range for documentation (RFC 5737). */
const addresses = 64

export const make = (plan: LoadPlan, authority: string, name: RequestKinds.Name): Supply => {
  const { keys, newFrom, requests, vatIds, viesPath } = plan
  const { body, contains, hasKey, isNew, status, target } = RequestKinds.kinds[name]

  const bytesOf = (index: number) => {
    const round = Math.floor(index / vatIds.length)
    const vatId = isNew ? RegisterIds.roundRobin(newFrom + index) : (vatIds[index % vatIds.length] ?? "")
    if (viesPath !== null) return Buffer.from(viesCheck(authority, viesPath, vatId))
    // Each pass over the VAT IDs uses another key and another spelling.
    const caller = hasKey
      ? `X-Api-Key: ${keys[(index + round) % keys.length]}`
      : `X-Forwarded-For: 198.51.100.${(index + round) % addresses}`
    const path = target(vatId, index + round)
    if (body === null) return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\n${caller}\r\n\r\n`)
    return Buffer.from(post(authority, path, `${caller}\r\nPrefer: respond-async\r\n`, body(vatId)))
  }

  // Requests with new VAT IDs do not repeat, so each is created when it is sent. They are few.
  const length = isNew ? 0 : Math.min(requests ?? vatIds.length * keys.length, preparedMax)
  const prepared = Array.from({ length }, (_, index) => bytesOf(index))
  let index = 0
  return {
    kind: name,
    accepts: (response) =>
      ResponseBytes.statusOf(response) === status &&
      (contains === null || viesPath !== null || response.includes(contains, 0, "latin1")),
    next: () => {
      const bytes = prepared[index % length] ?? bytesOf(index)
      index += 1
      return bytes
    }
  }
}

const viesCheck = (authority: string, path: string, vatId: string) =>
  post(authority, `${path}/check-vat-number`, "", JSON.stringify({ countryCode: vatId.slice(0, 2), vatNumber: vatId.slice(2) }))

/** Returns a POST of JSON. `headers` are further headers, each with its line break. */
const post = (authority: string, path: string, headers: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: ${authority}\r\n${headers}` +
  `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
