/**
 * The outbox delivers mails that a transaction queued. Delivery begins after the commit, on any replica, and continues through
 * restarts and outages.
 *
 * A mail is retried until the mail server answers, so it arrives at least once. It may arrive twice if the replica dies, or the
 * connection breaks, before the answer.
 */
import { Cause, Context, Duration, Effect, Exit, FiberSet, Layer, Option, Queue, Random, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { tokenLifetimes } from "#domain/accounts/Account.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { MailDeferred, Mailer, type MailFailure } from "#domain/accounts/email/Mailer.ts"
import * as OutboxRows from "#events/accounts/OutboxRows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Maximum number of concurrent deliveries per replica. */
const maxConcurrent = 4

/**
 * `firstRetry` is the pause after the first failed attempt. The pause doubles with each attempt, up to `longestRetry`. If a replica
 * dies, another replica takes over its mail after `lease`. `poll` is the interval at which a replica looks for mails that other
 * replicas queued. A stopping replica waits up to `grace` for its deliveries to end.
 */
export interface Pace {
  readonly firstRetry: Duration.Input
  readonly longestRetry: Duration.Input
  readonly lease: Duration.Input
  readonly poll: Duration.Input
  readonly grace: Duration.Input
}

/** The pace in production: about a hundred attempts in 24 hours, the lifetime of a token. */
const usualPace: Pace = {
  firstRetry: "2 seconds",
  longestRetry: "15 minutes",
  lease: "15 seconds",
  poll: "1 second",
  grace: "10 seconds"
}

const makeDeliver = Effect.fnUntraced(function* (rows: Effect.Success<ReturnType<typeof OutboxRows.make>>, pace: Pace) {
  const mailer = yield* Mailer
  const heartbeat = Duration.divideUnsafe(Duration.fromInputUnsafe(pace.lease), 3)

  /** Records the result of a delivery: the reply of the mail server, or null if this replica has lost the claim. */
  const record = Effect.fnUntraced(function* (mail: OutboxRows.ClaimedMail, exit: Exit.Exit<string | null, MailFailure>) {
    if (Exit.isSuccess(exit)) {
      if (exit.value !== null) return yield* rows.settle(mail, "sent", exit.value)
      return yield* Effect.logInfo(`This replica lost its claim on mail ${mail.mailId} and ended the delivery`)
    }
    if (Cause.hasInterruptsOnly(exit.cause)) return yield* rows.defer(mail, "interrupted", Duration.zero)
    const failure = Option.getOrElse(Cause.findErrorOption(exit.cause), () => new MailDeferred({ reason: "defect" }))
    if (failure._tag === "MailRefused") {
      yield* Effect.logWarning(`The mail server refused mail ${mail.mailId} permanently (${failure.reason}); it is not retried`)
      return yield* rows.settle(mail, "refused", failure.reason)
    }
    const wait = yield* backoff(mail.attempts, pace)
    const seconds = Math.ceil(Duration.toSeconds(wait))
    yield* Effect.logWarning(
      `Mail ${mail.mailId} could not be delivered (${failure.reason}); retrying in ${seconds} s (attempt ${mail.attempts + 1})`
    )
    return yield* rows.defer(mail, failure.reason, wait)
  })

  return (mail: OutboxRows.ClaimedMail) => {
    const claimLost = Effect.delay(rows.keep(mail), heartbeat).pipe(Effect.repeat({ while: (kept) => kept }), Effect.as(null))
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.exit(restore(Effect.raceFirst(mailer.deliver(mail), claimLost))), (exit) => record(mail, exit))
    ).pipe(
      // If the result is not stored, a replica sends the mail again after the lease of this attempt has expired.
      Effect.catchTag("StoreUnavailable", (error) =>
        Effect.logError(`The result of mail ${mail.mailId} could not be stored; a replica will send the mail again`, error.cause)
      )
    )
  }
})

/** Returns the pause before the next attempt. It has 20 % jitter, so that the mails of one outage are not all retried at once. */
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
  yield* Effect.addFinalizer(() => Effect.timeoutOption(FiberSet.awaitEmpty(deliveries), pace.grace))
  const wake = yield* Queue.sliding<void>(1)

  /** Starts the delivery of a mail that is due. Returns false if no mail is due. Waits while `maxConcurrent` deliveries run. */
  const iteration = Effect.gen(function* () {
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

  yield* Worker.loop(
    "Sending mails",
    Effect.flatMap(iteration, (busy) => (busy ? Effect.void : nextLook)),
    { afterFailure: pace.poll }
  )

  /** Queues a mail in the caller's transaction. */
  const enqueue = Effect.fn("Mails.enqueue")(
    function* (mail: OutboxRows.RequestedEmail) {
      yield* rows.add(mail, tokenLifetimes[mail.purpose])
      yield* sql.afterCommit(Effect.asVoid(Queue.offer(wake, undefined)))
    },
    Effect.catchTag("SqlError", (error) => QueryPolicy.refused(error))
  )

  return { enqueue }
})

const why = {
  expired: "its link is no longer valid",
  needless: "the address was confirmed meanwhile"
}

export class Outbox extends Context.Service<Outbox, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/events/accounts/Outbox"
) {
  /** Queues mails. For the lifetime of the layer, delivers the mails that any replica queued. */
  static readonly layer = (pace: Pace = usualPace) => Layer.effect(Outbox, make(pace))
}
