/** Serves the pages for people and the small files for browsers, crawlers and security researchers. */
import { Clock, DateTime, Duration, Effect, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse, UrlParams } from "effect/http"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { maxDays, SourceHistory } from "#domain/vat/SourceHistory.ts"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import { type FormOutcome, landingPage } from "#http/site/LandingPage.ts"
import { prefersPage } from "#http/wire/Negotiation.ts"
import * as Page from "#http/site/Page.ts"
import { plansPage } from "#http/site/PlansPage.ts"
import { counting } from "#http/pipeline/ResponseHints.ts"
import { Site, type SiteSettings } from "#http/pipeline/SiteSettings.ts"
import { statusPage } from "#http/site/StatusPage.ts"
import { makeSourceStatus } from "#http/system/SystemHandlers.ts"

/** Headers of content that does not change while the service runs. Only the client may cache it, because the response headers may show the usage of the client's API key. */
export const cacheable = { "cache-control": "private, max-age=3600" }

/** Headers of status pages and form results, which must not be cached. */
const uncacheable = { "cache-control": "no-store" }

/** How long a copy of security.txt is valid. RFC 9116, 2.5.5 (read 2026-11) recommends less than a year. */
const securityTextLifetime = Duration.days(180)

/** The icon of the pages: a tick in a square. */
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#1f6b3a"/><path d="M8 17l6 6L25 10" fill="none" stroke="#fff" stroke-width="4"/></svg>
`

const robots = `User-agent: *
Disallow: /v1/
`

/** The routes of this module, for the route table. */
export const sitePaths = [
  { path: "/", method: "GET" },
  { path: "/", method: "POST" },
  { path: "/plans", method: "GET" },
  { path: "/status", method: "GET" },
  { path: "/favicon.svg", method: "GET" },
  { path: "/favicon.ico", method: "GET" },
  { path: "/robots.txt", method: "GET" },
  { path: "/.well-known/security.txt", method: "GET" }
] as const

const image = HttpServerResponse.text(icon, { contentType: "image/svg+xml", headers: cacheable })

export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const site = yield* Site
    const { sha256Hex } = yield* Crypto
    const sourceStatus = yield* makeSourceStatus
    const history = (yield* SourceHistory).read(maxDays)
    const validateForm = yield* makeValidateForm
    const plans = Page.respond(plansPage(site, yield* Plans, sha256Hex), cacheable)
    const landing = Page.respond(landingPage(site, null, sha256Hex), cacheable)

    yield* router.add("GET", "/", landing)
    yield* router.add("POST", "/", validateForm)
    yield* router.add("GET", "/plans", plans)
    yield* router.add(
      "GET",
      "/status",
      Effect.zipWith(
        sourceStatus,
        Effect.orElseSucceed(history, () => null),
        (report, calls) => Page.respond(statusPage(site, report, calls, sha256Hex), uncacheable),
        { concurrent: true }
      )
    )
    yield* router.add("GET", "/favicon.svg", image)
    yield* router.add("GET", "/favicon.ico", image)
    yield* router.add("GET", "/robots.txt", HttpServerResponse.text(robots, { headers: cacheable }))
    yield* router.add("GET", "/.well-known/security.txt", securityText(site))
  })
)

/** The error for a form that a page of another site sends: it would use up the validations of the visitor's address. */
const foreignForm: Errors.Problem = {
  code: "VALIDATION_ERROR",
  message: "The form was sent by a page of another site. Open this page and validate the VAT ID here"
}

/** Creates the handler of the form at `/`. It validates the VAT ID like a call without a key, and returns the page with the result. */
const makeValidateForm = Effect.gen(function* () {
  const site = yield* Site
  const { sha256Hex } = yield* Crypto
  const { validate } = yield* ValidateVatId
  const proxies = yield* TrustedProxies

  const page = (outcome: FormOutcome, status: number, headers: Readonly<Record<string, string>> = {}) =>
    Page.respond(landingPage(site, outcome, sha256Hex), { ...uncacheable, ...headers }, status)

  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
    const form = yield* request.urlParamsBody
    const input = Option.getOrElse(UrlParams.getFirst(form, "vat_id"), () => "").trim()
    const refuse = Effect.fnUntraced(function* (problem: Errors.Problem) {
      if (!prefersPage(request.headers["accept"])) return yield* Errors.toResponse(problem)
      const { code, message, retryAfterSeconds } = problem
      const status = Errors.statusOf(code)
      const wait = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }
      return page({ _tag: "Refused", input, message, isOutage: status === 503 }, status, wait)
    })
    if (request.headers["sec-fetch-site"] === "cross-site") return yield* refuse(foreignForm)
    const question = { input, requesterVatId: null, reference: null, company: null, maxAge: null }
    const credential = { _tag: "Address", address: clientNetwork(request, proxies.count) } as const
    const validated = counting(credential, (call) => validate({ ...question, ...call }))
    return yield* Effect.matchEffect(validated, {
      onSuccess: (validation) => Effect.succeed(page({ _tag: "Validated", input, validation }, 200)),
      onFailure: (failure) => Effect.flatMap(FailureResponses.problemOf(failure), refuse)
    })
  })
})

/** Returns security.txt (RFC 9116), or 404 if the operator has published no contact. */
const securityText = ({ contact, publicUrl }: SiteSettings) =>
  contact === null
    ? Errors.toResponse({ code: "NOT_FOUND", message: "The operator of this service has published no contact" })
    : Effect.map(Clock.currentTimeMillis, (now) => {
        const expires = DateTime.addDuration(DateTime.makeUnsafe(now), securityTextLifetime)
        const text = [
          `Contact: ${contact}`,
          `Expires: ${DateTime.formatIso(expires)}`,
          "Preferred-Languages: en, de",
          `Canonical: ${publicUrl}/.well-known/security.txt`
        ]
        return HttpServerResponse.text(`${text.join("\n")}\n`, { headers: uncacheable })
      })
