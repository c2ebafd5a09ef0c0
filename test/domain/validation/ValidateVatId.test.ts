import { DateTime, Duration, Effect, Layer, MutableRef, Option, Result } from "effect"
import { TestClock } from "effect/testing"
import { AnswerCache, type StoredAnswer } from "#domain/vat/AnswerCache.ts"
import type { AnonymousCaller } from "#domain/callers/Caller.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { Metering, PreconditionFailed } from "#domain/callers/Metering.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { Sources, SourcesUnavailable } from "#domain/vat/Sources.ts"
import { type Attempt, overBudget } from "#domain/vat/Verdict.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, it } from "#test/support/Test.ts"

const caller: AnonymousCaller = { _tag: "Anonymous", addressHash: "h", stream: "s", meter: "m", limit: 10, perMinute: 10 }
const standing: Standing = { usage: { used: 1, limit: 10 }, window: null }
const stored: StoredAnswer = { position: 7, asOf: 7, answer: sourceAnswer }
const days = Duration.days(1_000)
const freshness = { valid: days, invalid: days, stale: days }
const outageWith = (attempts: ReadonlyArray<Attempt>) =>
  new SourcesUnavailable({ message: "none answers", attempts, retryAfterSeconds: 30 })
const outage = outageWith([])

/**
 * A test case. `stored` is the answer that the process caches, `newest` the answer in the database (by default the same), and
 * `changed` the answer in the database after the sources were asked (by default the same). `isFresh` is true if cached answers are fresh, and `answers` if the sources answer.
 */
interface Case {
  readonly stored: Option.Option<StoredAnswer>
  readonly newest?: StoredAnswer
  readonly changed?: StoredAnswer
  readonly isFresh: boolean
  readonly answers: boolean
  /** The failure of the sources if they do not answer. */
  readonly outage?: SourcesUnavailable
  /** True if the request is an accepted validation that the task engine answers. */
  readonly isTask?: boolean
}

/** Returns a function that validates a VAT ID and returns the outcome, the recorded event, and how often the sources were asked. */
const validated = Effect.fnUntraced(function* (known: Case) {
  const { answers, changed, isFresh, isTask = false, newest, stored } = known
  yield* TestClock.setTime(DateTime.toEpochMillis(sourceAnswer.answered_at))
  const events: Array<DomainEvent> = []
  let inDatabase = newest === undefined ? stored : Option.some(newest)
  let lookUps = 0
  const isOutdated = (asOf: number) => Option.isSome(inDatabase) && inDatabase.value.asOf !== asOf
  const outside = Layer.mergeAll(
    Layer.mock(Identity, { byAddress: () => caller }),
    Layer.mock(Metering, {
      admit: () => Effect.succeed(standing),
      record: ({ event, repeats }) => {
        if (repeats !== undefined && isOutdated(repeats.asOf)) return Effect.fail(new PreconditionFailed({ outdated: "answer" }))
        events.push(event)
        return Effect.succeed({ position: 8, standing })
      }
    }),
    Layer.mock(AnswerCache, {
      newest: () => Effect.succeed(stored),
      refresh: () => Effect.sync(() => inDatabase)
    }),
    Layer.mock(Sources, {
      lookUp: () => {
        lookUps += 1
        if (changed !== undefined) inDatabase = Option.some(changed)
        return answers
          ? Effect.succeed({ answer: sourceAnswer, attempts: [], requester: null })
          : Effect.fail(known.outage ?? outage)
      }
    }),
    Layer.mock(RateLimiter, { acquireSlots: () => Effect.succeed({ granted: true, retryAfterSeconds: 0 }) }),
    Layer.mock(ConfirmVatId, {})
  )
  const countries = { countries: "DE", requesterCountries: "DE" } as const
  const rules = { ...countries, freshness: isFresh ? freshness : { ...freshness, valid: Duration.zero } }
  const { validate } = yield* Effect.provide(
    ValidateVatId.use(Effect.succeed),
    ValidateVatId.layer(rules).pipe(Layer.provide(outside))
  )
  return Effect.fnUntraced(function* (reference: string | null) {
    const request = {
      credential: { _tag: "Address", address: "192.0.2.1" } as const,
      standing: MutableRef.make<Standing | null>(null),
      input: "ATU12345678",
      requesterVatId: null,
      reference,
      company: null,
      maxAge: null,
      ...(isTask ? { task: { taskId: "t", closingId: "c", opening: null } } : {})
    }
    const outcome = yield* Effect.result(validate(request))
    const event = events.at(-1)
    assert.strictEqual(Result.isSuccess(outcome), event?.type === VatIdVerified.type)
    return { outcome, event, lookUps }
  })
})

/** Returns a function that validates a VAT ID and returns the recorded event. */
const recorded = (known: Case) =>
  Effect.map(validated(known), (validate) => (reference: string | null) => Effect.map(validate(reference), ({ event }) => event))

const cached = { stored: Option.some(stored), isFresh: true, answers: true }
const cases = {
  cached,
  live: { stored: Option.none(), isFresh: true, answers: true },
  stale: { stored: Option.some(stored), isFresh: false, answers: false },
  failed: { stored: Option.none(), isFresh: true, answers: false }
} as const satisfies Record<string, Case>

it.effect.each(Object.entries(cases))(
  "a reference is in the personal document of a %s validation, and not in its event",
  function* ([name, known]) {
    const validated = yield* recorded(known)
    const event = yield* validated("INV-4711")
    assert.containSubset(event?.personal, { retention: "answers", document: { reference: "INV-4711" } })
    assert.notInclude(JSON.stringify(event?.data), "INV-4711")
    const without = yield* validated(null)
    if (name === "live") assert.notProperty(without?.personal?.document, "reference")
    else assert.notProperty(without, "personal")
    assert.deepStrictEqual(without?.data, event?.data)
  }
)

it.effect("ValidateVatId reuses one event object for repeated cached validations without a reference", function* () {
  const validated = yield* recorded(cached)
  const first = yield* validated(null)
  assert.notStrictEqual(yield* validated("INV-4711"), first)
  assert.strictEqual(yield* validated(null), first)
})

/** An answer that is too old to be fresh. */
const outdated: StoredAnswer = {
  position: 3,
  asOf: 3,
  answer: { ...sourceAnswer, answered_at: DateTime.subtract(sourceAnswer.answered_at, { days: 1_001 }) }
}

it.effect(
  "ValidateVatId reads the newest answer from the database if the answer in the cache of the process is not fresh",
  function* () {
    const validated = yield* recorded({ ...cached, stored: Option.some(outdated), newest: stored })
    assert.containSubset((yield* validated(null))?.data, { served: "cache", answer_position: 7 })
  }
)

it.effect("ValidateVatId returns the newest answer in the database, marked as stale, if no source answers", function* () {
  const validated = yield* recorded({ ...cases.stale, stored: Option.some(outdated), newest: stored })
  assert.containSubset((yield* validated(null))?.data, { served: "stale", answer_position: 7 })
})

it.effect("ValidateVatId returns no name that was erased while the sources were asked, and asks them only once", function* () {
  const names = { company_name: "Muster AG", company_address: "Wien" }
  const named = { ...stored, answer: { ...sourceAnswer, ...names } }
  const erased = { position: 7, asOf: 9, answer: { ...sourceAnswer, company_name: null, company_address: null } }
  const validate = yield* validated({ ...cases.stale, stored: Option.some(named), changed: erased })
  const { event, lookUps, outcome } = yield* validate(null)
  assert.containSubset(Result.getOrThrow(outcome), { served: "stale", answer: { company_name: null, company_address: null } })
  assert.strictEqual(lookUps, 1)
  assert.containSubset(event?.data, { served: "stale", answer_position: 7 })
})

const spent: Attempt = {
  source: "vies",
  outcome: "over_budget",
  code: overBudget,
  started_at: sourceAnswer.answered_at,
  duration_ms: 0
}

it.effect(
  "ValidateVatId returns a stale answer to a synchronous request while the budget of VIES calls is spent, but not to a task",
  function* () {
    const overspent = { ...cases.stale, outage: outageWith([spent]) }
    assert.containSubset((yield* (yield* recorded(overspent))(null))?.data, { served: "stale" })
    assert.isUndefined(yield* (yield* recorded({ ...overspent, isTask: true }))(null))
  }
)
