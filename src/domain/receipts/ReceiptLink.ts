/** Links that open one receipt in a browser without a key, until they expire or are revoked. */
import { DateTime, Result, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimits.ts"

/** Days that a link may be valid, and how many it is if its maker does not say. */
export const linkDays = { minimum: 1, maximum: 365 }
export const usualLinkDays = 30

/** Links of a receipt that are valid at a time, and links that are ever made of it: all of them are read to open one. */
const maxValid = 20
const maxMade = 100
/** The issue of the receipt, and of each link its creation and its revocation. */
export const maxStreamLength = 1 + 2 * maxMade

/** After a revocation there is room at once. */
const afterRevocationSeconds = 60

/** Who made or revoked a link: the receipt's API key, or its account after a login. */
export const LinkMaker = Schema.Literals(["key", "account"])

const ofLink = { account_id: Schema.String, key_id: Schema.String, link_id: Schema.String, by: LinkMaker }

/** A link was made that opens the receipt until `expires_at`. Its signature is a keyed hash, which is kept nowhere. */
export const ReceiptLinkCreated = DomainEvent.define(
  "ReceiptLinkCreated",
  1,
  Schema.Struct({ ...ofLink, expires_at: Schema.DateTimeUtcFromString })
)

/** A link of the receipt was revoked for good. */
export const ReceiptLinkRevoked = DomainEvent.define("ReceiptLinkRevoked", 1, Schema.Struct(ofLink))

/** A link as its receipt's events tell it. */
export interface ReceiptLink {
  readonly linkId: string
  readonly keyId: string
  readonly by: typeof LinkMaker.Type
  readonly createdAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  readonly isRevoked: boolean
}

/** Refuses one more link of a receipt that has too many. */
export const admitLink = (links: ReadonlyArray<ReceiptLink>, now: DateTime.Utc): Result.Result<void, RateLimitExceeded> => {
  const valid = links.filter(({ expiresAt, isRevoked }) => !isRevoked && DateTime.isGreaterThan(expiresAt, now))
  if (links.length < maxMade && valid.length < maxValid) return Result.succeed(undefined)
  const message =
    links.length < maxMade
      ? `A receipt has at most ${maxValid} valid links: revoke one first`
      : `Of a receipt at most ${maxMade} links are made`
  return Result.fail(new RateLimitExceeded({ message, retryAfterSeconds: afterRevocationSeconds }))
}

/** What a token says. */
export interface LinkClaims {
  readonly receiptId: string
  readonly linkId: string
  /** Whole seconds since 1970. */
  readonly expiresAtSeconds: number
}

/** What is signed: `<receipt>.<link>.<expiry>`. The signature follows it in the token. */
export const claimsText = ({ expiresAtSeconds, linkId, receiptId }: LinkClaims): string =>
  `${receiptId}.${linkId}.${expiresAtSeconds.toString(36)}`

const tokenForm = /^(([A-Z0-9]{1,10}-QC-\d{8}-[A-Z0-9]{10})\.([0-9a-f-]{36})\.([0-9a-z]{1,8}))\.([0-9a-f]{64})$/u

/** The parts of a token; null for what was never given out. The signature is not verified. */
export const parseToken = (token: string) => {
  const [, signed, receiptId, linkId, expiry, signature] = tokenForm.exec(token) ?? []
  if (signed === undefined || receiptId === undefined || linkId === undefined) return null
  if (expiry === undefined || signature === undefined) return null
  const claims: LinkClaims = { receiptId, linkId, expiresAtSeconds: Number.parseInt(expiry, 36) }
  return { claims, signed, signature }
}
