/** The settings of the service, read once from the environment at start. The only module that reads the environment. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import {
  Array as Arr,
  Config,
  ConfigProvider,
  Context,
  Duration,
  Effect,
  Layer,
  Option,
  Redacted,
  Result,
  Schema,
  SchemaIssue,
  SchemaTransformation,
  String as Str
} from "effect"
import { ConfirmationCountries } from "#domain/receipts/Confirmation.ts"
import type { RetentionPeriod } from "#domain/kernel/Retention.ts"
import type { PlanLimits } from "#domain/callers/Plan.ts"
import { parseGerman, type VatId } from "#domain/vat/VatId.ts"
import { logSettings, type LogSettings } from "#infra/telemetry/Logs.ts"
import { telemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"
import { fileSecretNames, fileSecrets } from "#infra/config/FileSecrets.ts"
import { settingNames } from "#infra/config/SettingNames.ts"
import * as Workers from "#infra/workers/Workers.ts"

const Count = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
/** For rate limits whose column in the database is a 32-bit integer. */
const Positive = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 }))
/** The URL is also sent in a header, which is limited to ASCII. */
const HttpUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^https?:\/\/[!-.0-~][!-~]*$/u.test(text) && URL.canParse(text)) ||
      "Expected a URL such as https://host or http://host:8080, in ASCII: an international name as xn--…"
  )
)
/** Paths are appended to it. */
const BaseUrl = HttpUrl.check(Schema.isPattern(/^[^?#]*$/u, { message: "Expected a URL without ? and #" }))
/** Rejects passwords with unescaped special characters, which would fail later, during the start. */
const hasReadablePassword = (text: string) =>
  URL.canParse(text) && Result.isSuccess(Result.try(() => decodeURIComponent(new URL(text).username + new URL(text).password)))
const hasPortAndTls = (text: string) => {
  const { port, searchParams } = new URL(text)
  return (
    port !== "0" &&
    ["disable", "allow", "prefer", "require", "verify-ca", "verify-full", null].includes(searchParams.get("sslmode"))
  )
}
const PostgresUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^postgres(?:ql)?:\/\/\S+$/u.test(text) && hasReadablePassword(text) && hasPortAndTls(text)) ||
      "Expected a URL that starts with postgresql://, special characters of its password percent-encoded, and a port and an sslmode that exist"
  )
)
/** In a URL IPv6 addresses are in brackets. */
const urlOf = (host: string, port: number) => `http://${host.includes(":") ? `[${host}]` : host}:${port}`
const Host = Schema.String.check(
  Schema.makeFilter(
    (text: string) => (/^[^\s/?#@]+$/u.test(text) && URL.canParse(urlOf(text, 80))) || "Expected an IP address or a host's name"
  )
)
const SmtpUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      (/^smtps?:\/\/[^\s/?#]+\/?$/u.test(text) && hasReadablePassword(text)) ||
      "Expected smtp://user:password@host:587 or smtps://host, special characters of the password percent-encoded"
  )
)
/** Hosts to which unencrypted connections are allowed. */
const thisMachine: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])
const isMirrorUrl = (text: string) => {
  if (!URL.canParse(text) || !hasReadablePassword(text)) return false
  const { hostname, protocol } = new URL(text)
  return protocol === "https:" || (protocol === "http:" && thisMachine.has(hostname))
}
const MirrorPlace = Schema.String.check(
  Schema.makeFilter(
    (text: string) => !text.includes("://") || isMirrorUrl(text) || "Expected a folder, or a URL that starts with https://"
  )
)
const MailFrom = Schema.String.check(
  Schema.isPattern(/^(?:[^\r\n<>@"]+<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u, {
    message: "Expected an address, or Name <address>"
  })
)
const Contact = Schema.String.check(
  Schema.isPattern(/^(?:mailto:)?[^\s<>@:/?#]+@[^\s<>@:/?#]+$|^https:\/\/[!-~]+$/u, {
    message: "Expected an email address or an https URL"
  })
)
const uriOfContact = (text: string) => (/^(?:https|mailto):/u.test(text) ? text : `mailto:${text}`)
/**
 * 16 random characters cannot be guessed. RFC 7518, 3.2 (read 2026-11) requires a key as long as the hash: the start logs a
 * warning below 32.
 */
const Secrets = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      partsOf(text).every((secret) => secret.length >= 16) ||
      "Expected secrets of at least 16 characters each, separated by commas"
  )
)
const partsOf = (text: string) => Arr.map(Str.split(text, ","), (part) => part.trim())
/** In a browser's form: no path, no default port. */
const Origins = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      partsOf(text).every((origin) => origin === "*" || (URL.canParse(origin) && new URL(origin).origin === origin)) ||
      "Expected origins such as https://app.example.com, separated by commas, or *"
  )
)
const Name = Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9-]{0,39}$/u, { message: "Expected 1 to 40 of a-z, 0-9 and -" }))
const Prefix = Schema.String.check(Schema.isPattern(/^[A-Z0-9]{1,10}$/u, { message: "Expected 1 to 10 of A-Z and 0-9" }))

const withoutSlash = (url: string) => url.replace(/\/+$/u, "")

const count = (name: string, value: number) => Config.schema(Count, name).pipe(Config.withDefault(value))
const positive = (name: string, value: number) => Config.schema(Positive, name).pipe(Config.withDefault(value))
const baseUrl = (name: string) => Config.schema(BaseUrl, name).pipe(Config.map(withoutSlash))

/** `90` (seconds), `90s`, `15m`, `1h`, `30d`, or words as in `90 minutes`. */
const DurationText = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      Option.isSome(Schema.decodeOption(Schema.DurationFromString)(inWords(text))) ||
      "Expected a length of time, for example 500ms, 90s, 15m, 1h or 30d"
  )
).pipe(
  Schema.decodeTo(Schema.DurationFromString, SchemaTransformation.transform({ decode: inWords, encode: (text: string) => text }))
)
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

const duration = (name: string, value: Duration.Duration) => Config.schema(DurationText, name).pipe(Config.withDefault(value))

/** `10y` or `10 years` from the end of the calendar year, `90d` or `90 days` from the answer. */
const Retention = Schema.String.check(
  Schema.makeFilter((text: string) => retentionIn(text) !== null || "Expected a retention period, for example 10y or 90d")
)
function retentionIn(text: string): RetentionPeriod | null {
  const [, number = "", unit] = /^([1-9]\d{0,4})\s*(y|years?|d|days?)$/u.exec(text.trim()) ?? []
  const count = Number(number)
  if (unit === undefined || count > (unit.startsWith("y") ? maxRetentionYears : 365 * maxRetentionYears)) return null
  return unit.startsWith("y") ? { years: count } : { days: count }
}
const maxRetentionYears = 100

const retention = (name: string, schema: typeof Retention) =>
  Config.schema(schema, name).pipe(
    Config.map((text): RetentionPeriod => retentionIn(text) ?? tenYears),
    Config.withDefault(tenYears)
  )
const tenYears = { years: 10 }
/** A receipt is evidence in tax matters for ten years (§ 147 AO). */
const LongRetention = Retention.check(
  Schema.makeFilter((text: string) => {
    const period = retentionIn(text)
    return (period !== null && "years" in period && period.years >= tenYears.years) || "Expected 10 years or more"
  })
)

const GermanVatId = Schema.String.check(
  Schema.makeFilter((text: string) => Option.isSome(parseGerman(text)) || "Expected a German VAT ID: DE and 9 digits")
).pipe(Schema.decodeTo(Schema.String, SchemaTransformation.passthrough()))

const plan = (name: string, limits: PlanLimits): Config.Config<PlanLimits> =>
  Config.all({
    perMonth: count(`PLAN_${name}_PER_MONTH`, limits.perMonth),
    perMinute: positive(`PLAN_${name}_PER_MINUTE`, limits.perMinute)
  })

/** Every setting by its name in the environment. Plans and limits: rules 38 to 43. */
const settings = Config.all({
  host: Config.schema(Host, "HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.Port("PORT").pipe(Config.withDefault(8080)),
  adminHost: Config.schema(Host, "ADMIN_HOST").pipe(Config.withDefault("127.0.0.1")),
  /** 0 disables it. */
  adminPort: Config.schema(Count.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })), "ADMIN_PORT").pipe(Config.option),
  logs: logSettings,
  /** The number that the first process assigns to a worker. */
  worker: Config.schema(Positive, Workers.numberSetting).pipe(Config.option),
  telemetry: telemetrySettings,
  shutdownDelay: duration("SHUTDOWN_DELAY", Duration.zero),
  shutdownGrace: duration("SHUTDOWN_GRACE", Duration.seconds(4)),
  databaseUrl: Config.schema(Schema.Redacted(PostgresUrl), "DATABASE_URL").pipe(Config.option),
  databaseWait: duration("DATABASE_WAIT", Duration.seconds(30)),
  dataDir: Config.NonEmptyString("DATA_DIR").pipe(Config.withDefault(".data")),
  viesBaseUrl: baseUrl("VIES_BASE_URL").pipe(Config.option),
  bzstBaseUrl: baseUrl("BZST_BASE_URL").pipe(Config.option),
  viesPerDay: Config.schema(Positive, "VIES_PER_DAY").pipe(Config.option),
  bzstRequester: Config.schema(GermanVatId, "BZST_REQUESTER_VAT_ID").pipe(Config.option),
  publicUrl: baseUrl("PUBLIC_URL").pipe(Config.option),
  trustedProxies: Config.schema(Count.check(Schema.isBetween({ minimum: 0, maximum: 10 })), "TRUST_PROXY").pipe(
    Config.withDefault(0)
  ),
  corsOrigins: Config.schema(Origins, "CORS_ORIGINS").pipe(
    Config.map((text): ReadonlyArray<string> => partsOf(text)),
    Config.withDefault([])
  ),
  serviceName: Config.schema(Name, "SERVICE_NAME").pipe(Config.withDefault("vatproof")),
  receiptPrefix: Config.schema(Prefix, "RECEIPT_PREFIX").pipe(Config.withDefault("VP")),
  confirmationCountries: Config.schema(ConfirmationCountries, "QUALIFIED_CONFIRMATION_COUNTRIES").pipe(
    Config.withDefault("DE" as const)
  ),
  upgradeUrl: Config.schema(HttpUrl, "UPGRADE_URL").pipe(Config.option),
  contact: Config.schema(Contact, "CONTACT").pipe(Config.map(uriOfContact), Config.option),
  smtpUrl: Config.schema(Schema.Redacted(SmtpUrl), "SMTP_URL").pipe(Config.option),
  mailFrom: Config.schema(MailFrom, "MAIL_FROM").pipe(Config.option),
  cacheTtlInvalid: duration("CACHE_TTL_INVALID", Duration.hours(1)),
  staleMaxAge: duration("STALE_MAX_AGE", Duration.days(30)),
  retention: Config.all({
    receipts: retention("RETENTION_RECEIPTS", LongRetention),
    answers: retention("RETENTION_ANSWERS", Retention)
  }),
  anonymousLifetime: count("ANONYMOUS_LIFETIME", 10),
  anonymousPerMinute: positive("ANONYMOUS_PER_MINUTE", 10),
  plans: Config.all({
    free: plan("FREE", { perMonth: 100, perMinute: 10 }),
    starter: plan("STARTER", { perMonth: 1_000, perMinute: 60 }),
    business: plan("BUSINESS", { perMonth: 10_000, perMinute: 300 }),
    enterprise: plan("ENTERPRISE", { perMonth: 100_000, perMinute: 1_000 })
  }),
  jwtSecrets: Config.schema(Schema.Redacted(Secrets), "JWT_SECRET").pipe(
    Config.map((secrets) => Arr.map(partsOf(Redacted.value(secrets)), (secret) => Redacted.make(secret))),
    Config.option
  ),
  notaryKey: Config.schema(Schema.Redacted(Schema.String), "NOTARY_KEY").pipe(Config.option),
  notaryKeyFile: Config.NonEmptyString("NOTARY_KEY_FILE").pipe(Config.option),
  checkpointMirror: Config.schema(Schema.Redacted(MirrorPlace), "CHECKPOINT_MIRROR").pipe(Config.option),
  registrationsPerDay: positive("REGISTRATIONS_PER_DAY", 3),
  signupsPerDay: positive("SIGNUPS_PER_DAY", 3),
  loginFailuresPer15Min: positive("LOGIN_FAILURES_PER_15_MIN", 10)
})

export type Settings = Config.Success<typeof settings>

/** A setting is invalid; the message names it. */
export class InvalidSetting extends Schema.TaggedError<InvalidSetting>()("InvalidSetting", { message: Schema.String }) {}

export class AppConfig extends Context.Service<AppConfig, Settings>()("vatproof/infra/config/AppConfig") {}

/** Reads the settings from names and values; an empty value counts as not set. */
export const read = (env: Readonly<Record<string, string | undefined>>) => {
  const set: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) if (value !== undefined && value.trim() !== "") set[name] = value.trim()
  const names = settingNames(set, fileSecretNames)
  return settings.parse(names.provider).pipe(
    Effect.mapError(
      ({ cause }) => new InvalidSetting({ message: cause._tag === "SchemaError" ? sentence(cause) : cause.message })
    ),
    Effect.tap(() => {
      const message = names.misspelled()
      return message === undefined ? Effect.void : Effect.fail(new InvalidSetting({ message }))
    })
  )
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/** One line with the setting and what was expected. Excludes the value, which may be a secret. */
const sentence = (error: Schema.SchemaError) =>
  formatIssues(error.issue)
    .issues.map(({ message, path }) => `${(path ?? []).map(String).join(".")}: ${message.replace(/\s+/gu, " ")}`)
    .join("; ")

/** The log settings alone, as far as they are valid, to log that other settings are invalid. */
export const logSettingsAlone = Effect.suspend(() => logSettings.parse(ConfigProvider.fromEnv())).pipe(
  Effect.orElseSucceed(() => usualLogs)
)
const usualLogs: LogSettings = { format: Option.none(), level: "Info", production: false, access: false }

export const layer = Layer.effect(
  AppConfig,
  Effect.suspend(() => Effect.flatMap(fileSecrets(process.env), read))
).pipe(Layer.provide(NodeFileSystem.layer))

/** The requester for the BZSt as a VAT ID. */
export const requesterOf = (config: Settings): VatId | null => Option.getOrNull(Option.flatMap(config.bzstRequester, parseGerman))

const everyInterface = new Set(["0.0.0.0", "::"])

/** The service's URL for callers, without a final slash: PUBLIC_URL, otherwise the address it listens on. */
export const publicUrlOf = ({ host, port, publicUrl }: Settings): string => {
  if (Option.isSome(publicUrl)) return publicUrl.value
  const name = everyInterface.has(host) ? "localhost" : host
  return urlOf(name, port)
}

/** The sender of mails. `name` identifies the service to a mail server; undefined means the machine's name. */
export const letterheadOf = (config: Settings) => {
  const publicUrl = publicUrlOf(config)
  const host = new URL(publicUrl).hostname
  const domain = /\.[a-z]/iu.test(host) ? host : undefined
  const from = Option.getOrElse(config.mailFrom, () => `no-reply@${domain ?? "localhost"}`)
  return { from, publicUrl, serviceName: config.serviceName, name: domain }
}
