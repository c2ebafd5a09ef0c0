/** Returns all secrets in the settings, which are redacted in log lines. */
import { Option, Redacted } from "effect"
import type { Settings } from "#infra/config/AppConfig.ts"
import { keysIn } from "#infra/security/NotaryKeys.ts"

export const make = ({
  apiKey,
  checkpointMirror,
  databaseUrl,
  jwtSecrets,
  notaryKey,
  smtpUrl,
  telemetry
}: Settings): ReadonlyArray<Redacted.Redacted> => [
  ...Option.toArray(databaseUrl).flatMap(passwordsOf),
  ...Option.toArray(smtpUrl).flatMap(passwordsOf),
  ...Option.toArray(checkpointMirror).flatMap(passwordsOf),
  ...Option.getOrElse(jwtSecrets, () => []),
  ...Option.toArray(apiKey),
  ...Option.toArray(notaryKey).flatMap(keysIn),
  ...[telemetry.traces, telemetry.metrics, telemetry.logs].flatMap((target) =>
    Option.toArray(target).flatMap(({ headers }) => Object.values(headers))
  )
]

/** Returns the password of a URL, both percent-encoded and decoded. */
const passwordsOf = (url: Redacted.Redacted): ReadonlyArray<Redacted.Redacted> => {
  const text = Redacted.value(url)
  const password = URL.canParse(text) ? new URL(text).password : ""
  return password === "" ? [] : [Redacted.make(password), Redacted.make(decodeURIComponent(password))]
}
