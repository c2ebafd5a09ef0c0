/**
 * The outbox: what a transaction asks to be mailed is delivered after its commit, by any replica, through restarts and outages.
 *
 * A mail is sent once. Before the mail server can accept it, `handed_over` is committed, and a mail in that state is never begun anew:
 * if the worker dies then, the mail counts as `unknown`, which may mean that it did not arrive and never that it arrives twice. A
 * refusal, or a connection that the server closes without an answer, is an answer: the mail was not accepted (RFC 5321, 3.8 and 6.1).
 */
import { Cause, Duration, Effect, Exit, Fiber, FiberSet, Layer, Option, Queue, Random, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { tokenLifetimes } from "#domain/accounts/Account.ts"
import { MailDeferred, Mailer, type MailFailure, MailUncertain } from "#domain/email/Mailer.ts"
import { EmailQueue, type RequestedEmail } from "#domain/email/EmailQueue.ts"
import * as OutboxRows from "#events/outbox/OutboxRows.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"

/** Mails that a replica delivers at the same time. */
const maxConcurrent = 4

/** How long a stopping service waits for the answer to a mail that it has handed over. */
const grace = "10 seconds"

/**
 * `firstRetry` is the wait after the first failed attempt; it doubles up to `longestRetry`. `lease` is how long a dead worker keeps a
 * mail, `poll` how often a replica looks for mails of others.
 */
export interface Pace {
  readonly firstRetry: Duration.Input
  readonly longestRetry: Duration.Input
  readonly lease: Duration.Input
  readonly poll: Duration.Input
}

/** Some hundred attempts in the 24 hours that a token lives. */
export const usualPace: Pace = { firstRetry: "2 seconds", longestRetry: "15 minutes", lease: "15 seconds", poll: "1 second" }

const makeDeliver = Effect.fnUntraced(function* (rows: Effect.Success<ReturnType<typeof OutboxRows.make>>, pace: Pace) {
  const mailer = yield* Mailer
  const heartbeat = Duration.divideUnsafe(Duration.fromInputUnsafe(pace.lease), 3)

  const record = Effect.fnUntraced(function* (
    mail: OutboxRows.ClaimedMail,
    exit: Exit.Exit<string, MailFailure>,
    mayBeTaken: boolean
  ) {
    const failure = Exit.isSuccess(exit) ? null : failureOf(exit.cause, mayBeTaken)
    switch (failure?._tag) {
      case undefined:
        return yield* rows.settle(mail, "sent", Exit.getSuccess(exit).pipe(Option.getOrElse(() => "")))
      case "MailDeferred": {
        const wait = yield* backoff(mail.attempts, pace)
        const seconds = Math.ceil(Duration.toSeconds(wait))
        yield* Effect.logWarning(
          `Mail ${mail.mailId} was not taken (${failure.reason}): attempt ${mail.attempts + 1} follows in ${seconds} s`
        )
        return yield* rows.defer(mail, failure.reason, wait)
      }
      case "MailRefused":
        yield* Effect.logWarning(`Mail ${mail.mailId} was refused for good (${failure.reason})`)
        return yield* rows.settle(mail, "refused", failure.reason)
      case "MailUncertain":
        yield* Effect.logWarning(`Whether mail ${mail.mailId} was taken is unknown (${failure.reason}): it is not sent again`)
        return yield* rows.settle(mail, "unknown", failure.reason)
    }
  })

  return Effect.fnUntraced(
    function* (mail: OutboxRows.ClaimedMail) {
      let mayBeTaken = false
      const handOver = Effect.suspend(() => {
        mayBeTaken = true
        return rows.handOver(mail)
      })
      const alive = rows.keep(mail).pipe(
        Effect.flatMap((kept) => (kept || mayBeTaken ? Effect.void : Effect.fail(new MailDeferred({ reason: "claim lost" })))),
        Effect.delay(heartbeat),
        Effect.forever
      )
      yield* Effect.uninterruptibleMask(
        Effect.fnUntraced(function* (restore) {
          const fiber = yield* Effect.forkScoped(Effect.interruptible(Effect.raceFirst(mailer.deliver(mail, handOver), alive)))
          const waited = yield* Effect.exit(restore(Fiber.await(fiber)))
          if (Exit.isSuccess(waited)) return yield* record(mail, waited.value, mayBeTaken)
          // The service stops. What can still be taken back is taken back; otherwise a last answer is awaited.
          if (!mayBeTaken) yield* Fiber.interrupt(fiber)
          const last = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), grace)
          if (!mayBeTaken) yield* rows.defer(mail, "interrupted", Duration.zero)
          else if (Option.isSome(last)) yield* record(mail, last.value, mayBeTaken)
          return yield* Effect.interrupt
        })
      )
    },
    Effect.scoped,
    // The lease ends by itself: another turn goes on from there.
    Effect.catchTag("StoreUnavailable", (error) => Effect.logError("What became of a mail could not be stored", error.cause))
  )
})

/** A stop or a defect of ours before the hand-over changes nothing; after it, nothing can be said. */
const failureOf = (cause: Cause.Cause<MailFailure>, mayBeTaken: boolean): MailFailure =>
  Option.getOrElse(Cause.findErrorOption(cause), () => {
    const reason = Cause.hasInterruptsOnly(cause) ? "interrupted" : "defect"
    return mayBeTaken ? new MailUncertain({ reason }) : new MailDeferred({ reason })
  })

/** Doubles from `firstRetry` to `longestRetry`, and varies by a fifth so that mails of one outage do not come back in step. */
const backoff = (attempts: number, { firstRetry, longestRetry }: Pace) =>
  Effect.map(Random.next, (random) =>
    Duration.min(
      Duration.times(Duration.fromInputUnsafe(firstRetry), 2 ** Math.min(attempts - 1, 30) * (0.8 + 0.4 * random)),
      Duration.fromInputUnsafe(longestRetry)
    )
  )

const make = Effect.fnUntraced(function* (pace: Pace) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* OutboxRows.make(pace.lease)
  const deliver = yield* makeDeliver(rows, pace)
  const slots = yield* Semaphore.make(maxConcurrent)
  const deliveries = yield* FiberSet.make()
  const wake = yield* Queue.sliding<void>(1)

  /** Starts one delivery if a mail is due and gives back whether one was. Waits while all slots are taken. */
  const turn = Effect.gen(function* () {
    yield* slots.take(1)
    const { claimed, settled } = yield* rows.claim.pipe(Effect.onError(() => slots.release(1)))
    for (const { mailId, state } of settled) yield* Effect.logInfo(`Mail ${mailId} is not sent: ${why[state]}`)
    if (Option.isNone(claimed)) return yield* Effect.as(slots.release(1), false)
    const links = yield* rows.linksOf(claimed.value)
    const delivery = Effect.withSpan(deliver(claimed.value), "Outbox.deliver", { kind: "consumer", root: true, links })
    yield* FiberSet.run(deliveries, Effect.ensuring(delivery, slots.release(1)))
    return true
  })

  const nextLook = Effect.timeoutOption(Queue.take(wake), pace.poll)

  yield* turn.pipe(
    Effect.flatMap((busy) => (busy ? Effect.void : nextLook)),
    Effect.catchTag("StoreUnavailable", () => nextLook),
    Effect.catchDefect((defect) => Effect.andThen(Effect.logError("The outbox stumbled; it looks again", defect), nextLook)),
    Effect.forever,
    Effect.forkScoped
  )

  const enqueue = Effect.fn("Mails.enqueue")(
    function* (mail: RequestedEmail) {
      yield* rows.add(mail, tokenLifetimes[mail.purpose])
      yield* sql.afterCommit(Effect.asVoid(Queue.offer(wake, undefined)))
    },
    Effect.catchTag("SqlError", (error) => QueryPolicy.refused(error))
  )

  return EmailQueue.of({ enqueue })
})

const why = {
  unknown: "a worker ended before it knew whether the mail was taken",
  expired: "its link is no longer valid",
  needless: "the address was confirmed meanwhile"
}

/** Takes mails, and delivers those of all replicas while it is alive. */
export const layer = (pace: Pace) => Layer.effect(EmailQueue, make(pace))
