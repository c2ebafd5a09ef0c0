/**
 * `it` and `layer` of @effect/vitest, whose bodies may be generators:
 *
 *     it.effect("revokes a key", function* () { … })
 *
 * A body may also be a function that returns an effect.
 */
import * as Vitest from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"

type Body<Args extends ReadonlyArray<unknown>, R> = (
  ...args: Args
) => Effect.Effect<unknown, unknown, R> | Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

interface Tester<R> extends Pick<Vitest.Vitest.Tester<R>, "prop"> {
  (name: string, body: Body<[Vitest.TestContext], R>, timeoutMs?: number): void
  readonly each: <T>(cases: ReadonlyArray<T>) => (name: string, body: Body<[T], R>, timeoutMs?: number) => void
}

/** `live` gets no shared layer. With `excludeTestServices`, `effect` has the shared layer and the real clock. */
type It<R> = Vitest.API & { readonly effect: Tester<R | Scope.Scope>; readonly live: Tester<Scope.Scope> } & Pick<
    Vitest.Vitest.Methods,
    "prop"
  >

const run =
  <Args extends ReadonlyArray<unknown>, R>(body: Body<Args, R>) =>
  (...args: Args): Effect.Effect<unknown, unknown, R> => {
    const made = body(...args)
    return Effect.isEffect(made) ? made : Effect.gen(() => made)
  }

const testerOf = <R>(tester: Vitest.Vitest.Tester<R>): Tester<R> =>
  Object.assign((name: string, body: Body<[Vitest.TestContext], R>, timeoutMs?: number) => tester(name, run(body), timeoutMs), {
    each:
      <T>(cases: ReadonlyArray<T>) =>
      (name: string, body: Body<[T], R>, timeoutMs?: number) =>
        tester.each(cases)(name, (one) => run(body)(one), timeoutMs),
    prop: tester.prop
  })

/** Replaces `effect` and `live` by a proxy, because the other functions of Vitest expect the original object as `this`. */
function withGenerators<R>(methods: Vitest.Vitest.MethodsNonLive<R>): It<R>
function withGenerators<R>(methods: Vitest.Vitest.MethodsNonLive<R>): object {
  const effect = testerOf(methods.effect)
  const live = testerOf(Vitest.live)
  return new Proxy(methods, {
    get: (target, name, receiver) => (name === "effect" ? effect : name === "live" ? live : Reflect.get(target, name, receiver))
  })
}

export const it = withGenerators(Vitest.it)

/** Shares a layer among the tests of a suite. */
export const layer =
  <R, E>(shared: Layer.Layer<R, E>, options?: Parameters<typeof Vitest.layer>[1]) =>
  (name: string, suite: (it: It<R>) => void) =>
    Vitest.layer(shared, options)(name, (it) => suite(withGenerators(it)))

/** Returns testers that build the layer anew for each test. */
export const fresh = <R, E>(own: Layer.Layer<R, E>) => {
  const testerOfOwn = (
    tester: Tester<Scope.Scope>
  ): Pick<Tester<R | Scope.Scope>, "each"> & ((name: string, body: Body<[Vitest.TestContext], R | Scope.Scope>) => void) =>
    Object.assign(
      (name: string, body: Body<[Vitest.TestContext], R | Scope.Scope>) =>
        tester(name, (context) => Effect.provide(Effect.scoped(run(body)(context)), own, { local: true })),
      {
        each:
          <T>(cases: ReadonlyArray<T>) =>
          (name: string, body: Body<[T], R | Scope.Scope>) =>
            tester.each(cases)(name, (one) => Effect.provide(Effect.scoped(run(body)(one)), own, { local: true }))
      }
    )
  return { effect: testerOfOwn(it.effect), live: testerOfOwn(it.live) }
}

export const assert: typeof Vitest.assert = Vitest.assert
export const describe: typeof Vitest.describe = Vitest.describe
