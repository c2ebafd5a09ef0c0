/**
 * Handles every request to the sandbox: finds its endpoint, decides the behaviour, and sends or breaks
 * the answer.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Effect, Exit, Option, Random, Ref } from "effect"
import * as Control from "#infra/sandbox/Control.ts"
import * as Endpoints from "#infra/sandbox/Endpoints.ts"
import type { Behaviour } from "#infra/sandbox/Fault.ts"
import { type Finish, Observer } from "#infra/sandbox/Observer.ts"
import { json, type Reply, type Stamp } from "#infra/sandbox/Simulator.ts"
import * as FaultyResponse from "#infra/sandbox/FaultyResponse.ts"

/** Returns the handler of a request. Its effect ends when the answer is sent or the client has disconnected. */
export const make = Effect.fnUntraced(function* (parts: Control.Parts) {
  const observe = yield* Observer

  const simulate = Effect.fnUntraced(function* (
    response: ServerResponse,
    name: string,
    body: string,
    { isProbe, read, source }: Endpoints.Endpoint
  ) {
    const settings = yield* Ref.get(parts.settings)
    const question = read(body, settings)
    const { requester, target: vatId } = question
    const { behaviour, by } = parts.decider.decide(source, isProbe, question, settings)
    const right = question.answer(yield* newStamp, behaviour.code)
    const outcome = FaultyResponse.brokenOutcome(behaviour) ?? right.outcome
    const finish = yield* observe({ source, endpoint: name, probe: isProbe, vatId, requester, by, outcome })
    yield* noted(response, finish, after(isProbe ? 0 : settings.latency_ms, carryOut(response, behaviour, right)))
  })

  const serve = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const read = yield* FaultyResponse.readBody(request)
    if (Option.isNone(read)) return yield* FaultyResponse.send(response, tooLarge)
    const body = read.value
    const method = request.method ?? "GET"
    const url = URL.parse(request.url ?? "/", "http://sandbox")
    const path = url?.pathname ?? "/"
    const endpoint = Endpoints.endpoints.get(`${method} ${path}`)
    if (endpoint !== undefined) return yield* simulate(response, `${method} ${path.split("/").at(-1)}`, body, endpoint)
    const reply = yield* Control.answer(parts, { method, path, body }, [...Endpoints.endpoints.keys()])
    yield* FaultyResponse.send(response, reply)
  })

  return (request: IncomingMessage, response: ServerResponse): Effect.Effect<void> =>
    Effect.raceFirst(serve(request, response), FaultyResponse.clientGone(response)).pipe(
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("The sandbox failed to answer a request; this is a bug of the sandbox", defect),
          response.headersSent ? FaultyResponse.reset(response) : FaultyResponse.send(response, bug)
        )
      )
    )
})

const tooLarge = json(413, "TOO_LARGE", {
  error: { code: "TOO_LARGE", message: `The request body exceeds ${FaultyResponse.bodyBytesMax} bytes` }
})
const bug = json(500, "BUG", { error: { code: "BUG", message: "This is a bug of the sandbox, not an answer of a source" } })

/**
 * Waits for the delay of the behaviour and answers. Sends the intact answer, `right`, unless the behaviour breaks or replaces it.
 */
const carryOut = (response: ServerResponse, behaviour: Behaviour, right: Reply): Effect.Effect<void> => {
  const sent =
    behaviour.breakage !== undefined
      ? FaultyResponse.sendBroken(response, behaviour.breakage, right)
      : FaultyResponse.send(
          response,
          behaviour.httpStatus === undefined ? right : FaultyResponse.httpError(behaviour.httpStatus, behaviour.retryAfterSeconds)
        )
  return after(behaviour.latencyMs ?? 0, sent)
}

const after = (ms: number, effect: Effect.Effect<void>) => (ms === 0 ? effect : Effect.delay(effect, ms))

/** Runs `work` and reports the end of the call, even if `work` is interrupted. */
const noted = (response: ServerResponse, finish: Finish, work: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.onExit(work, (exit) => finish(response.headersSent ? response.statusCode : null, Exit.hasInterrupts(exit)))

const hexDigits = "0123456789abcdef"
const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const draw = (random: Random.Random, letters: string, length: number): string =>
  Array.from({ length }, () => letters.charAt(Math.floor(random.nextDoubleUnsafe() * letters.length))).join("")

const newStamp = Effect.gen(function* () {
  const random = yield* Random.Random
  const stamp: Stamp = {
    nanos: yield* Clock.currentTimeNanos,
    id: draw(random, hexDigits, 16),
    consultationNumber: `WAPIAAAA${draw(random, idLetters, 8)}`
  }
  return stamp
})
