/** Schemas of setting values: the accepted texts and their decoding. Error messages never contain the value. */
import { Array as Arr, Config, Duration, Option, Result, Schema, SchemaTransformation, String as Str } from "effect"
import type { RetentionPeriod } from "#domain/log/Retention.ts"
import { parseGerman, parseOption, type VatId } from "#domain/vat/VatId.ts"

/** A whole number in digits. JavaScript would parse `1.000`, which means a thousand in German, as 1. */
const Digits = Schema.String.check(
  Schema.isPattern(/^\d+$/u, { message: "Expected a whole number in digits, for example 1000" })
).pipe(Schema.decodeTo(Schema.FiniteFromString))
export const Count = Digits.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
/** An integer from 1 to the maximum of a 32-bit integer, the type of the database columns for rate limits. */
export const Positive = Digits.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 }))
export const Port = Digits.check(Schema.isBetween({ minimum: 1, maximum: 65_535 }))
/** A URL in ASCII. The service sends UPGRADE_URL in a response header, and a header has only ASCII characters. */
export const HttpUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^https?:\/\/[!-.0-~][!-~]*$/u.test(text) && URL.canParse(text)) ||
      "Expected a URL such as https://host or http://host:8080, in ASCII; write an international name as xn--…"
  )
)
/** A URL to which paths are appended. */
const BaseUrl = HttpUrl.check(Schema.isPattern(/^[^?#]*$/u, { message: "Expected a URL without ? and #" }))
/** Returns false if the user name or password is not percent-encoded correctly. Such a URL would fail at the first connection. */
const hasReadablePassword = (text: string) =>
  URL.canParse(text) && Result.isSuccess(Result.try(() => decodeURIComponent(new URL(text).username + new URL(text).password)))
const hasPortAndTls = (text: string) => {
  const { port, searchParams } = new URL(text)
  return (
    port !== "0" &&
    ["disable", "allow", "prefer", "require", "verify-ca", "verify-full", null].includes(searchParams.get("sslmode"))
  )
}
/** The parameters that the driver reads. It ignores all others, for example a misspelled `sslmode`. */
const urlParameters = ["application_name", "connect_timeout", "dbname", "host", "options", "password", "port", "sslmode", "user"]
const hasKnownParameters = (text: string) =>
  !URL.canParse(text) || new URL(text).searchParams.keys().every((name) => urlParameters.includes(name))
export const PostgresUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^postgres(?:ql)?:\/\/\S+$/u.test(text) && hasReadablePassword(text) && hasPortAndTls(text)) ||
      "Expected a URL that starts with postgresql://, with the special characters of its password percent-encoded, a port other than 0, and a valid sslmode"
  ),
  Schema.makeFilter(
    (text: string) =>
      hasKnownParameters(text) ||
      `Expected no parameters after ? other than ${urlParameters.join(", ")}: the others have no effect`
  )
)
/** Returns the URL of a host and port. An IPv6 address is put in brackets. */
export const urlOf = (host: string, port: number) => `http://${host.includes(":") ? `[${host}]` : host}:${port}`

const everyInterface = new Set(["0.0.0.0", "::"])

/**
 * Returns the URL for clients of a server on this machine. Replaces a wildcard address such as 0.0.0.0 by `localhost`, because on
 * some systems a client cannot connect to a wildcard address.
 */
export const connectUrlOf = (host: string, port: number) => urlOf(everyInterface.has(host) ? "localhost" : host, port)

export const Host = Schema.String.check(
  Schema.makeFilter(
    (text: string) => (/^[^\s/?#@]+$/u.test(text) && URL.canParse(urlOf(text, 80))) || "Expected an IP address or a host name"
  )
)
export const SmtpUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^smtps?:\/\/[^\s/?#]+\/?$/u.test(text) && hasReadablePassword(text)) ||
      "Expected smtp://host:587 or smtps://host, with user:password@ before the host if needed and the special characters of the password percent-encoded"
  )
)
/** The host names of this machine. CHECKPOINT_MIRROR accepts an unencrypted `http://` URL only with one of these hosts. */
const thisMachine: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])
const isMirrorUrl = (text: string) => {
  if (!URL.canParse(text) || !hasReadablePassword(text)) return false
  const { hostname, protocol } = new URL(text)
  return protocol === "https:" || (protocol === "http:" && thisMachine.has(hostname))
}
export const MirrorPlace = Schema.String.check(
  Schema.makeFilter(
    (text: string) => !text.includes("://") || isMirrorUrl(text) || "Expected a folder, or a URL that starts with https://"
  )
)
export const MailFrom = Schema.String.check(
  Schema.isPattern(/^(?:[^\r\n<>@"]+<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u, {
    message: "Expected an email address, or Name <email address>"
  })
)
export const Contact = Schema.String.check(
  Schema.isPattern(/^(?:mailto:)?[^\s<>@:/?#]+@[^\s<>@:/?#]+$|^https:\/\/[!-~]+$/u, {
    message: "Expected an email address or an https URL"
  })
)
export const uriOfContact = (text: string) => (/^(?:https|mailto):/u.test(text) ? text : `mailto:${text}`)
/**
 * Secrets of 16 characters or more, separated by commas. 16 random characters cannot be guessed. RFC 7518, 3.2 (read 2026-11)
 * requires 32 bytes for HS256, so the service logs a warning at its start about a shorter secret.
 */
export const Secrets = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      partsOf(text).every((secret) => secret.length >= 16) ||
      "Expected secrets of at least 16 characters each, separated by commas"
  )
)
export const partsOf = (text: string) => Arr.map(Str.split(text, ","), (part) => part.trim())
/** Origins as browsers send them, without path and default port; `*` means all. */
export const Origins = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      partsOf(text).every((origin) => origin === "*" || (URL.canParse(origin) && new URL(origin).origin === origin)) ||
      "Expected origins such as https://app.example.com, separated by commas, or *"
  )
)
export const Name = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9-]{0,39}$/u, { message: "Expected 1 to 40 characters from a-z, 0-9 and -" })
)
export const Prefix = Schema.String.check(
  Schema.isPattern(/^[A-Z0-9]{1,10}$/u, { message: "Expected 1 to 10 characters from A-Z and 0-9" })
)

const withoutSlash = (url: string) => url.replace(/\/+$/u, "")

export const count = (name: string, value: number) => Config.schema(Count, name).pipe(Config.withDefault(value))
export const positive = (name: string, value: number) => Config.schema(Positive, name).pipe(Config.withDefault(value))
export const baseUrl = (name: string) => Config.schema(BaseUrl, name).pipe(Config.map(withoutSlash))

/** A length of time from 0 to `maximum`: `90` (seconds), `90s`, `15m`, `1h`, `30d`, or in words such as `90 minutes`. */
const durationTo = (maximum: Duration.Duration) =>
  Schema.String.check(
    Schema.makeFilter(
      (text: string) =>
        Option.exists(decodeDuration(inWords(text)), Duration.between({ minimum: Duration.zero, maximum })) ||
        `Expected a length of time up to ${Duration.format(maximum)}, for example 500ms, 90s, 15m or 1h`
    )
  ).pipe(
    Schema.decodeTo(
      Schema.DurationFromString,
      SchemaTransformation.transform({ decode: inWords, encode: (text: string) => text })
    )
  )
const decodeDuration = Schema.decodeOption(Schema.DurationFromString)
function inWords(text: string) {
  return text.replace(/^(\d+)\s*(ms|s|m|h|d|)$/u, (_, number, unit) => `${number} ${unitNames.get(unit)}`)
}
const unitNames = new Map([
  ["ms", "millis"],
  ["", "seconds"],
  ["s", "seconds"],
  ["m", "minutes"],
  ["h", "hours"],
  ["d", "days"]
])

export const duration = (name: string, value: Duration.Duration, maximum: Duration.Duration) =>
  Config.schema(durationTo(maximum), name).pipe(Config.withDefault(value))

/** A retention period: `10y` or `10 years` from the end of the calendar year, `90d` or `90 days` from the time of the answer. */
export const Retention = Schema.String.check(
  Schema.makeFilter((text: string) => retentionIn(text) !== null || "Expected a retention period, for example 10y or 90d")
)
function retentionIn(text: string): RetentionPeriod | null {
  const [, number = "", unit] = /^([1-9]\d{0,4})\s*(y|years?|d|days?)$/u.exec(text.trim()) ?? []
  const count = Number(number)
  if (unit === undefined || count > (unit.startsWith("y") ? maxRetentionYears : 365 * maxRetentionYears)) return null
  return unit.startsWith("y") ? { years: count } : { days: count }
}
const maxRetentionYears = 100

export const retention = (name: string, schema: typeof Retention) =>
  Config.schema(schema, name).pipe(
    Config.map((text): RetentionPeriod => retentionIn(text) ?? tenYears),
    Config.withDefault(tenYears)
  )
const tenYears = { years: 10 }
/** A retention period of ten years or more, because a receipt is evidence in tax matters for ten years (§ 147 AO). */
export const LongRetention = Retention.check(
  Schema.makeFilter((text: string) => {
    const period = retentionIn(text)
    return (period !== null && "years" in period && period.years >= tenYears.years) || "Expected 10 years or more"
  })
)

/** An optional VAT ID that `parse` accepts; null if the setting is absent. */
const vatId = (parse: (text: string) => Option.Option<VatId>, expected: string) => {
  const form = Schema.String.check(Schema.makeFilter((text: string) => Option.isSome(parse(text)) || expected))
  return (name: string) =>
    Config.schema(form, name).pipe(
      Config.map((text) => Option.getOrNull(parse(text))),
      Config.withDefault(null)
    )
}
export const germanVatId = vatId(parseGerman, "Expected a German VAT ID: DE and 9 digits")
export const anyVatId = vatId(parseOption, "Expected a VAT ID of an EU member state or XI, with its prefix")
