import { Effect, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { accountStream, AccountSignedUp } from "#domain/accounts/AccountEvents.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import * as PgAccountStore from "#events/accounts/PgAccountStore.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const accountId = "019371c0-5f00-7000-8000-0000000000ac"

layer(PgAccountStore.layer.pipe(Layer.provideMerge(MigratedDatabase.layer)), { excludeTestServices: true })(
  "the account store",
  (it) => {
    it.effect("fails 10 s after the start of a change, also if each attempt conflicts with another writer", function* () {
      const accounts = yield* AccountStore
      const events = yield* EventStore
      const contact = { agentId: null, email: null }
      yield* accounts.create(accountId, contact, [AccountSignedUp.make({ account_id: accountId, plan: "free" })])
      const attempts = yield* Queue.unbounded<void>()
      let count = 0
      const conflicting = {
        stream: accountStream(accountId),
        expectedVersion: null,
        events: [{ type: "Tested", schemaVersion: 1, data: {} }],
        charge: null
      } as const
      const change = accounts.change(accountId, () =>
        Effect.gen(function* () {
          count += 1
          yield* events.append(conflicting)
          yield* Queue.offer(attempts, undefined)
          return yield* Effect.delay(Effect.succeed({ events: conflicting.events, value: null }), "6 seconds")
        })
      )
      yield* Effect.gen(function* () {
        const changing = yield* Effect.forkChild(Effect.flip(change))
        const ended = Fiber.await(changing)
        for (const _ of [1, 2, 3, 4, 5]) {
          yield* Effect.raceFirst(Queue.take(attempts), ended)
          yield* TestClock.adjust("6 seconds")
        }
        assert.strictEqual((yield* Fiber.join(changing))._tag, "StoreUnavailable")
      }).pipe(Effect.provide(TestClock.layer()))
      assert.strictEqual(count, 2)
    })
  }
)
