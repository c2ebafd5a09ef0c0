/** The settings of the service, read once from the environment at start. No other module reads the environment. */
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
  Schema,
  SchemaIssue
} from "effect"
import type { LogPurpose } from "#domain/log/LogPurpose.ts"
import { Countries } from "#domain/receipts/ConfirmationRules.ts"
import { type PlanLimits, usualPlans } from "#domain/callers/PlanLimits.ts"
import {
  anyVatId,
  baseUrl,
  connectUrlOf,
  Contact,
  Count,
  count,
  duration,
  germanVatId,
  Host,
  HttpUrl,
  LongRetention,
  MailFrom,
  MirrorPlace,
  Name,
  Origins,
  partsOf,
  Port,
  Positive,
  positive,
  PostgresUrl,
  Prefix,
  Retention,
  retention,
  Secrets,
  SmtpUrl,
  uriOfContact
} from "#infra/config/SettingForms.ts"
import { logSettings, type LogSettings } from "#infra/telemetry/Logs.ts"
import { telemetrySettings } from "#infra/telemetry/TelemetrySettings.ts"
import { fileSecretNames, fileSecrets } from "#infra/config/FileSecrets.ts"
import { settingNames, workerNumber } from "#infra/config/SettingNames.ts"

const plan = (name: string, limits: PlanLimits): Config.Config<PlanLimits> =>
  Config.all({
    perMonth: count(`PLAN_${name}_PER_MONTH`, limits.perMonth),
    perMinute: positive(`PLAN_${name}_PER_MINUTE`, limits.perMinute)
  })

/** Decodes every setting from its environment variable. Rules 38 to 43 define the plans and limits. */
const each = {
  host: Config.schema(Host, "HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.schema(Port, "PORT").pipe(Config.withDefault(8080)),
  adminHost: Config.schema(Host, "ADMIN_HOST").pipe(Config.withDefault("127.0.0.1")),
  /** 0 disables the admin port. */
  adminPort: Config.schema(Count.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })), "ADMIN_PORT").pipe(Config.option),
  logs: logSettings,
  /** The worker's number, set by the process that started it. Absent in a service with one process. */
  worker: Config.schema(Positive, workerNumber).pipe(Config.option),
  telemetry: telemetrySettings,
  shutdownDelay: duration("SHUTDOWN_DELAY", Duration.zero, Duration.days(1)),
  shutdownGrace: duration("SHUTDOWN_GRACE", Duration.seconds(4), Duration.days(1)),
  databaseUrl: Config.schema(Schema.Redacted(PostgresUrl), "DATABASE_URL").pipe(Config.option),
  databaseWait: duration("DATABASE_WAIT", Duration.seconds(30), Duration.days(1)),
  dataDir: Config.NonEmptyString("DATA_DIR").pipe(Config.withDefault(".data")),
  viesBaseUrl: baseUrl("VIES_BASE_URL").pipe(Config.option),
  bzstBaseUrl: baseUrl("BZST_BASE_URL").pipe(Config.option),
  viesPerDay: Config.schema(Positive, "VIES_PER_DAY").pipe(Config.option),
  bzstRequester: germanVatId("BZST_REQUESTER_VAT_ID"),
  requester: anyVatId("REQUESTER_VAT_ID"),
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
  confirmationCountries: Config.schema(Countries, "QUALIFIED_CONFIRMATION_COUNTRIES").pipe(Config.withDefault("DE" as const)),
  requesterCountries: Config.schema(Countries, "REQUESTER_COUNTRIES").pipe(Config.withDefault("DE" as const)),
  upgradeUrl: Config.schema(HttpUrl, "UPGRADE_URL").pipe(Config.option),
  contact: Config.schema(Contact, "CONTACT").pipe(Config.map(uriOfContact), Config.option),
  smtpUrl: Config.schema(Schema.Redacted(SmtpUrl), "SMTP_URL").pipe(Config.option),
  mailFrom: Config.schema(MailFrom, "MAIL_FROM").pipe(Config.option),
  cacheTtlInvalid: duration("CACHE_TTL_INVALID", Duration.hours(1), Duration.days(1)),
  staleMaxAge: duration("STALE_MAX_AGE", Duration.days(30), Duration.days(366)),
  retention: Config.all({
    receipts: retention("RETENTION_RECEIPTS", LongRetention),
    answers: retention("RETENTION_ANSWERS", Retention)
  }),
  anonymousLifetime: count("ANONYMOUS_LIFETIME", usualPlans.anonymous.lifetime),
  anonymousPerMinute: positive("ANONYMOUS_PER_MINUTE", usualPlans.anonymous.perMinute),
  plans: Config.all({
    free: plan("FREE", usualPlans.byName.free),
    starter: plan("STARTER", usualPlans.byName.starter),
    business: plan("BUSINESS", usualPlans.byName.business),
    enterprise: plan("ENTERPRISE", usualPlans.byName.enterprise)
  }),
  jwtSecrets: Config.schema(Schema.Redacted(Secrets), "JWT_SECRET").pipe(
    Config.map((secrets) => Arr.map(partsOf(Redacted.value(secrets)), (secret) => Redacted.make(secret))),
    Config.option
  ),
  /** The API key with which the command `vatproof batch` calls a service. */
  apiKey: Config.schema(Schema.Redacted(Schema.NonEmptyString), "API_KEY").pipe(Config.option),
  notaryKey: Config.schema(Schema.Redacted(Schema.String), "NOTARY_KEY").pipe(Config.option),
  notaryKeyFile: Config.NonEmptyString("NOTARY_KEY_FILE").pipe(Config.option),
  checkpointMirror: Config.schema(Schema.Redacted(MirrorPlace), "CHECKPOINT_MIRROR").pipe(Config.option),
  registrationsPerDay: positive("REGISTRATIONS_PER_DAY", 3),
  signupsPerDay: positive("SIGNUPS_PER_DAY", 3),
  loginFailuresPer15Min: positive("LOGIN_FAILURES_PER_15_MIN", 10)
}
const settings = Config.all(each)

/**
 * `purpose` is not a setting: the command `sandbox` has the settings of a sandbox, and every other command those of a live service. A
 * command on an existing log does not depend on it.
 */
export type Settings = Config.Success<typeof settings> & { readonly purpose: LogPurpose }

/** Defaults of the sandbox that differ: data of its own, values to see, and limits for an afternoon of trials. */
const defaults: Readonly<Record<LogPurpose, Readonly<Record<string, string>>>> = {
  live: {},
  sandbox: {
    DATA_DIR: ".data-sandbox",
    // A German VAT ID that the BZSt publishes as a test number.
    BZST_REQUESTER_VAT_ID: "DE123456789",
    CONTACT: "operator@example.com",
    REGISTRATIONS_PER_DAY: "1000",
    SIGNUPS_PER_DAY: "1000"
  }
}

/** A setting is invalid; the message names the setting. */
export class InvalidSetting extends Schema.TaggedError<InvalidSetting>()("InvalidSetting", { message: Schema.String }) {}

export class AppConfig extends Context.Service<AppConfig, Settings>()("vatproof/infra/config/AppConfig") {}

/** Decodes the settings from environment variables. An empty value counts as not set. Fails with `InvalidSetting`. */
export const read = (env: Readonly<Record<string, string | undefined>>, purpose: LogPurpose = "live") => {
  const set: Record<string, string> = { ...defaults[purpose] }
  for (const [name, value] of Object.entries(env)) if (value !== undefined && value.trim() !== "") set[name] = value.trim()
  const names = settingNames(set, fileSecretNames)
  return settings.parse(names.provider).pipe(
    Effect.catchTag("ConfigError", () =>
      // The first error ends the decoding, so this decodes each setting alone.
      Effect.forEach(Object.values<Config.Config<unknown>>(each), (setting) =>
        Effect.option(Effect.flip(setting.parse(names.provider)))
      ).pipe(
        Effect.flatMap((errors) => Effect.fail(new InvalidSetting({ message: Arr.getSomes(errors).map(sentenceOf).join("; ") })))
      )
    ),
    Effect.tap(() => {
      const message = names.misspelled()
      return message === undefined ? Effect.void : Effect.fail(new InvalidSetting({ message }))
    }),
    // The name of the service is in its receipts, exports and mails, so that all of them name the sandbox.
    Effect.map((read): Settings => ({
      ...read,
      purpose,
      serviceName: purpose === "sandbox" ? `${read.serviceName}-sandbox` : read.serviceName
    }))
  )
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const sentenceOf = ({ cause }: Config.ConfigError) => (cause._tag === "SchemaError" ? sentence(cause) : cause.message)

/** Returns one line that names each invalid setting and the expected form. Excludes the values, which may be secrets. */
const sentence = (error: Schema.SchemaError) =>
  formatIssues(error.issue)
    .issues.map(({ message, path }) => `${(path ?? []).map(String).join(".")}: ${message.replace(/\s+/gu, " ")}`)
    .join("; ")

/**
 * Reads only the log settings, so that the service can log which other setting is invalid. Returns the defaults if a log setting
 * is invalid.
 */
export const logSettingsAlone = Effect.suspend(() => logSettings.parse(ConfigProvider.fromEnv())).pipe(
  Effect.orElseSucceed(() => usualLogs)
)
const usualLogs: LogSettings = { format: Option.none(), level: "Info", production: false, access: false }

const layerFor = (purpose: LogPurpose) =>
  Layer.effect(
    AppConfig,
    Effect.suspend(() => Effect.flatMap(fileSecrets(process.env), (env) => read(env, purpose)))
  ).pipe(Layer.provide(NodeFileSystem.layer))

export const layer = layerFor("live")
export const layerSandbox = layerFor("sandbox")

/** Returns the service's URL for callers, without a final slash: PUBLIC_URL, otherwise the address the service listens on. */
export const publicUrlOf = ({ host, port, publicUrl }: Settings): string =>
  Option.getOrElse(publicUrl, () => connectUrlOf(host, port))

/**
 * Returns the settings for the sender of mails. `name` is the host name that the service announces to the mail server; undefined
 * means the host name of the machine.
 */
export const mailOptionsOf = (config: Settings) => {
  const publicUrl = publicUrlOf(config)
  const host = new URL(publicUrl).hostname
  const domain = /\.[a-z]/iu.test(host) ? host : undefined
  const from = Option.getOrElse(config.mailFrom, () => `no-reply@${domain ?? "localhost"}`)
  return { from, publicUrl, serviceName: config.serviceName, name: domain }
}
