import { Duration, Effect, Option } from "effect"
import { read } from "#infra/config/AppConfig.ts"
import { assert, describe, it } from "#test/support/Test.ts"

describe("the service's settings", () => {
  it.effect("have the documented defaults if they are unset or blank", function* () {
    const settings = yield* read({ PORT: "", HOST: " ", VIES_BASE_URL: undefined })
    assert.containSubset(settings, {
      host: "127.0.0.1",
      port: 8080,
      dataDir: ".data",
      trustedProxies: 0,
      serviceName: "vatproof",
      receiptPrefix: "VP",
      anonymousLifetime: 10,
      anonymousPerMinute: 10,
      registrationsPerDay: 3,
      signupsPerDay: 3,
      plans: {
        free: { perMonth: 100, perMinute: 10 },
        starter: { perMonth: 1_000, perMinute: 60 },
        business: { perMonth: 10_000, perMinute: 300 },
        enterprise: { perMonth: 100_000, perMinute: 1_000 }
      }
    })
    assert.deepStrictEqual(
      [settings.viesBaseUrl, settings.publicUrl, settings.bzstRequester, settings.requester, settings.requesterCountries],
      [Option.none(), Option.none(), null, null, "DE"]
    )
    assert.deepStrictEqual([settings.cacheTtlInvalid, settings.staleMaxAge], [Duration.hours(1), Duration.days(30)])
  })

  it.effect("give a sandbox data of its own, high limits, and a name that says so", function* () {
    const differing = { dataDir: ".data-sandbox", registrationsPerDay: 1_000, signupsPerDay: 1_000, purpose: "sandbox" }
    assert.containSubset(yield* read({ DATA_DIR: "" }, "sandbox"), { ...differing, serviceName: "vatproof-sandbox" })
    const set = { DATA_DIR: "other", SIGNUPS_PER_DAY: "2", SERVICE_NAME: "acme" }
    assert.containSubset(yield* read(set, "sandbox"), { dataDir: "other", signupsPerDay: 2, serviceName: "acme-sandbox" })
  })

  it.effect.each([
    ["90", Duration.seconds(90)],
    ["90s", Duration.seconds(90)],
    ["15m", Duration.minutes(15)],
    ["1h", Duration.hours(1)],
    ["30d", Duration.days(30)],
    ["0", Duration.zero],
    ["90 minutes", Duration.minutes(90)]
  ] as const)("accept the duration %s", ([text, duration]) =>
    Effect.map(read({ STALE_MAX_AGE: text }), ({ staleMaxAge }) => assert.isTrue(Duration.Equivalence(staleMaxAge, duration)))
  )

  it.effect.each(["-5 minutes", "Infinity", "367d"])("reject the duration %s, which is negative or too long", (text) =>
    Effect.map(Effect.flip(read({ STALE_MAX_AGE: text })), ({ message }) =>
      assert.strictEqual(message, "STALE_MAX_AGE: Expected a length of time up to 366d, for example 500ms, 90s, 15m or 1h")
    )
  )

  it.effect.each([
    ["PLAN_FREE_PERMONTH", "PLAN_FREE_PER_MONTH"],
    ["SHUTDOWN_DELEY", "SHUTDOWN_DELAY"],
    ["JWT_SECRET_FIEL", "JWT_SECRET_FILE"],
    ["OTEL_EXPORTER_OTLP_ENDPIONT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
  ] as const)("reject the unknown setting %s and suggest %s", ([name, meant]) =>
    Effect.map(Effect.flip(read({ [name]: "keep secret" })), ({ message }) =>
      assert.strictEqual(message, `${name}: There is no such setting; did you mean ${meant}?`)
    )
  )

  it.effect("ignore environment variables of other programs", () =>
    read({
      HOME: "/root",
      PATH: "/bin",
      TERM: "xterm",
      NODE_VERSION: "24.0.0",
      KUBERNETES_PORT: "tcp://10.0.0.1:443",
      VATPROOF_SERVICE_PORT: "8080",
      VATPROOF_WORKERS: "4",
      OTEL_BLRP_SCHEDULE_DELAY: "5000",
      OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: "/ca.pem",
      TEST_DATABASE_URL: "postgresql://x",
      DATABASE_URL_FILE: "/run/url"
    })
  )

  it.effect("accept CORS origins only in the form that browsers send", function* () {
    const { corsOrigins } = yield* read({ CORS_ORIGINS: "https://app.example.com , http://localhost:3000" })
    assert.deepStrictEqual(corsOrigins, ["https://app.example.com", "http://localhost:3000"])
    for (const text of ["app.example.com", "https://app.example.com/", "https://app.example.com:443", "https://*.example.com,"]) {
      assert.include((yield* Effect.flip(read({ CORS_ORIGINS: text }))).message, "CORS_ORIGINS: Expected origins")
    }
  })

  it.effect("accept base URLs with and without a trailing slash", function* () {
    const { publicUrl, viesBaseUrl } = yield* read({
      PUBLIC_URL: "https://vat.example.org/",
      VIES_BASE_URL: "http://127.0.0.1:1/rest"
    })
    assert.deepStrictEqual(
      [publicUrl, viesBaseUrl],
      [Option.some("https://vat.example.org"), Option.some("http://127.0.0.1:1/rest")]
    )
  })

  it.effect.each([
    ["HOST", "my host"],
    ["HOST", "300.1.1.1"],
    ["PORT", "eighty"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["TRUST_PROXY", "-1"],
    ["TRUST_PROXY", "true"],
    ["TRUST_PROXY", "1.5"],
    ["STALE_MAX_AGE", "soon"],
    ["STALE_MAX_AGE", "-1h"],
    ["CACHE_TTL_INVALID", "1x"],
    ["VIES_BASE_URL", "ec.europa.eu"],
    ["BZST_BASE_URL", "ftp://example.org"],
    ["BZST_REQUESTER_VAT_ID", "ATU12345678"],
    ["BZST_REQUESTER_VAT_ID", "DE12345678"],
    ["REQUESTER_VAT_ID", "FR1"],
    ["REQUESTER_VAT_ID", "GB123456789"],
    ["REQUESTER_COUNTRIES", "FR"],
    ["DATABASE_URL", "mysql://vatproof:keep-secret@127.0.0.1/vatproof"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret%zz@127.0.0.1/vatproof"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret#x@127.0.0.1/vatproof"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret@127.0.0.1:99999/vatproof"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret@127.0.0.1:0/vatproof"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret@127.0.0.1/vatproof?sslmode=on"],
    ["DATABASE_URL", "postgresql://vatproof:keep-secret@127.0.0.1/vatproof?sslmod=require"],
    ["SMTP_URL", "smtp://vatproof:keep-secret%zz@mail.example.com"],
    ["PUBLIC_URL", "http://[bad"],
    ["PUBLIC_URL", "https://vat.example/?q=1"],
    ["PUBLIC_URL", "https://łódź.example"],
    ["UPGRADE_URL", "https://shop.example/größe"],
    ["PUBLIC_URL", "http://vat.example.com:99999"],
    ["VIES_BASE_URL", "http://:x"],
    ["SERVICE_NAME", "Vat Proof"],
    ["RECEIPT_PREFIX", "vp"],
    ["ANONYMOUS_LIFETIME", "ten"],
    ["ANONYMOUS_PER_MINUTE", "0"],
    ["PLAN_FREE_PER_MONTH", "1e99"],
    ["PLAN_FREE_PER_MONTH", "-1"],
    ["PLAN_FREE_PER_MONTH", "1.000"],
    ["VIES_PER_DAY", "1e3"],
    ["PORT", "8.080"],
    ["PLAN_STARTER_PER_MINUTE", "NaN"],
    ["PLAN_FREE_PER_MINUTE", "2147483648"],
    ["REGISTRATIONS_PER_DAY", "0"],
    ["SIGNUPS_PER_DAY", "3000000000"],
    ["UPGRADE_URL", "javascript:alert(1)"],
    ["CONTACT", "javascript:alert(1)"],
    ["CONTACT", "the operator"]
  ] as const)("reject %s=%s with a one-line error that has the name but not the value", function* ([name, value]) {
    const { message } = yield* Effect.flip(read({ [name]: value }))
    assert.isTrue(message.startsWith(`${name}: `), message)
    assert.notInclude(message, "\n")
    assert.notMatch(message, /Duration/u)
    assert.notInclude(message, "keep-secret")
  })
})
