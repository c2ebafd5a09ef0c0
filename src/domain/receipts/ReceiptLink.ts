/** Links that open one receipt in a browser without a key, until they expire or are revoked. */
import { DateTime, Result, Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"

/** Limits of a link's validity in days, and its default. */
export const linkDays = { minimum: 1, maximum: 365 }
export const usualLinkDays = 30

/**
 * Maximum number of valid links of a receipt, and of all links ever created for it. The limits are low, because opening a link
 * reads the events of all links of the receipt.
 */
const maxValid = 20
const maxMade = 100
/**
 * Maximum number of events in a receipt's stream: its issue, the acceptance of its validation if that has an id, and the creation and
 * revocation of each link.
 */
export const maxStreamLength = 2 + 2 * maxMade

/** Retry-After for a receipt with too many valid links. Waiting does not help: the client must revoke a link, which takes less than a minute. */
const afterRevocationSeconds = 60

/** Who created or revoked a link: the receipt's API key, or its account after a login. */
export const LinkMaker = Schema.Literals(["key", "account"])

const ofLink = { account_id: Schema.String, key_id: Schema.String, link_id: Schema.String, by: LinkMaker }

/**
 * A link to the receipt was created. It is valid until `expires_at`. With `until` it ends earlier if the API key of the receipt is revoked. The
 * signature in its token is a keyed hash, which is not stored.
 */
export const ReceiptLinkCreated = DomainEvent.define(
  "ReceiptLinkCreated",
  1,
  Schema.Struct({ ...ofLink, expires_at: Schema.DateTimeUtcFromString, until: Schema.optionalKey(Schema.Literal("key")) })
)

/** A link of the receipt was revoked permanently. */
export const ReceiptLinkRevoked = DomainEvent.define("ReceiptLinkRevoked", 1, Schema.Struct(ofLink))

/** A link, read from the events of its receipt. */
export interface ReceiptLink {
  readonly linkId: string
  readonly keyId: string
  readonly by: typeof LinkMaker.Type
  readonly createdAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  readonly endsWithKey: boolean
  readonly isRevoked: boolean
}

/** Fails if no further link may be created for the receipt. */
export const admitLink = (links: ReadonlyArray<ReceiptLink>, now: DateTime.Utc): Result.Result<void, RateLimitExceeded> => {
  const valid = links.filter(({ expiresAt, isRevoked }) => !isRevoked && DateTime.isGreaterThan(expiresAt, now))
  if (links.length < maxMade && valid.length < maxValid) return Result.succeed(undefined)
  const message =
    links.length < maxMade
      ? `A receipt has at most ${maxValid} valid links: revoke one first`
      : `At most ${maxMade} links can be created for a receipt, including revoked and expired ones`
  return Result.fail(new RateLimitExceeded({ message, retryAfterSeconds: afterRevocationSeconds }))
}

/** The claims in the token of a link. */
export interface LinkClaims {
  readonly receiptId: string
  readonly linkId: string
  /** Whole seconds since 1970. */
  readonly expiresAtSeconds: number
}

/** Returns the signed part of a token: `<receipt>.<link>.<expiry>`. In the token, the signature follows. */
export const claimsText = ({ expiresAtSeconds, linkId, receiptId }: LinkClaims): string =>
  `${receiptId}.${linkId}.${expiresAtSeconds.toString(36)}`

const tokenForm = /^(([A-Z0-9]{1,10}-QC-\d{8}-[A-Z0-9]{10})\.([0-9a-f-]{36})\.([0-9a-z]{1,8}))\.([0-9a-f]{64})$/u

/** Returns the parts of a token; null if its form is wrong. Does not verify the signature. */
export const parseToken = (token: string) => {
  const [, signed, receiptId, linkId, expiry, signature] = tokenForm.exec(token) ?? []
  if (signed === undefined || receiptId === undefined || linkId === undefined) return null
  if (expiry === undefined || signature === undefined) return null
  const claims: LinkClaims = { receiptId, linkId, expiresAtSeconds: Number.parseInt(expiry, 36) }
  return { claims, signed, signature }
}
