/**
 * Limits on the number of API keys of an account. The quota counts per key,
 * so an account with many keys would have more quota (rule 42).
 */
import { DateTime, Duration } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"

const maxActiveKeys = 25
const maxIssuedPerPeriod = 50

/** Retry-After for an account with too many active keys. Waiting does not help: the client must revoke a key, which takes less than a minute. */
const afterRevocationSeconds = 60

/** Returns the error if the account got the maximum number of new secrets in this month, otherwise null. A rotation counts as a new secret. */
export const secretsRefusal = ({ keys }: AccountState, now: DateTime.Utc): RateLimitExceeded | null => {
  const period = billingPeriod(now)
  const drawn = keys.flatMap(({ secrets }) => secrets).filter(({ at }) => billingPeriod(at).name === period.name)
  if (drawn.length < maxIssuedPerPeriod) return null
  const message = `At most ${maxIssuedPerPeriod} API keys are issued to an account per calendar month (UTC), including revoked and rotated ones`
  const retryAfterSeconds = Math.ceil(Duration.toSeconds(DateTime.distance(now, period.end)))
  return new RateLimitExceeded({ message, retryAfterSeconds })
}

/** Returns the error if the account may not get another key, otherwise null. */
export const keyRefusal = (state: AccountState, now: DateTime.Utc): RateLimitExceeded | null => {
  if (state.keys.filter((key) => !key.revoked).length < maxActiveKeys) return secretsRefusal(state, now)
  const message = `An account has at most ${maxActiveKeys} active API keys: revoke one first`
  return new RateLimitExceeded({ message, retryAfterSeconds: afterRevocationSeconds })
}
