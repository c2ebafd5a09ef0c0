/**
 * Handles every request to the sandbox: finds its endpoint, decides the behaviour, and sends or breaks
 * the answer.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Effect, Exit, Option, Random, Ref } from "effect"
import * as Control from "#infra/sandbox/Control.ts"
import * as Endpoints from "#infra/sandbox/Endpoints.ts"
import type { Behaviour } from "#infra/sandbox/Fault.ts"
import { type Call, Observer } from "#infra/sandbox/Observer.ts"
import { json, type Reply, type Stamp } from "#infra/sandbox/Simulator.ts"
import * as FaultyResponse from "#infra/sandbox/FaultyResponse.ts"

type EndpointOf<Tag extends Endpoints.Endpoint["_tag"]> = Extract<Endpoints.Endpoint, { readonly _tag: Tag }>

/** A request to one endpoint. `name` is the endpoint's name for the observer. */
interface Visit {
  readonly response: ServerResponse
  readonly name: string
  readonly body: string
}

/** Returns the handler of a request. Its effect ends when the answer is sent or the client has disconnected. */
export const make = Effect.fnUntraced(function* (parts: Control.Parts) {
  const observe = yield* Observer

  const check = Effect.fnUntraced(function* ({ response, name, body }: Visit, { source, read }: EndpointOf<"Check">) {
    const settings = yield* Ref.get(parts.settings)
    const question = read(body, settings)
    const { target: vatId, requester } = question
    const call = yield* observe({ source, endpoint: name, probe: false, vatId, requester })
    const { by, behaviour } = parts.decider.decide(source, question, settings)
    const right = question.answer(yield* newStamp, behaviour.code)
    call.decide(by, FaultyResponse.brokenOutcome(behaviour) ?? right.outcome)
    yield* noted(response, call, after(settings.latency_ms, carryOut(response, behaviour, right)))
  })

  const probe = Effect.fnUntraced(function* ({ response, name }: Visit, { source, answer, error }: EndpointOf<"Probe">) {
    const call = yield* observe({ ...noTarget, source, endpoint: name })
    const scripted = parts.script.next({ source, probe: true, memberState: undefined, vatId: undefined })
    const stamp = yield* newStamp
    const right = scripted?.code === undefined ? answer(stamp, yield* Ref.get(parts.settings)) : error(stamp, scripted.code)
    call.decide(scripted === undefined ? "settings" : "script", FaultyResponse.brokenOutcome(scripted ?? {}) ?? right.outcome)
    yield* noted(response, call, carryOut(response, scripted ?? {}, right))
  })

  const testService = Effect.fnUntraced(function* (visit: Visit, { source, answer }: EndpointOf<"TestService">) {
    const call = yield* observe({ ...noTarget, source, endpoint: visit.name })
    const reply = answer(visit.body, yield* newStamp)
    call.decide("request", reply.outcome)
    yield* noted(visit.response, call, FaultyResponse.send(visit.response, reply))
  })

  const serve = Effect.fnUntraced(function* (request: IncomingMessage, response: ServerResponse) {
    const read = yield* FaultyResponse.readBody(request)
    if (Option.isNone(read)) return yield* FaultyResponse.send(response, tooLarge)
    const body = read.value
    const method = request.method ?? "GET"
    const url = URL.parse(request.url ?? "/", "http://sandbox")
    const path = url?.pathname ?? "/"
    const visit = { response, name: `${method} ${path.split("/").at(-1)}`, body }
    const endpoint = Endpoints.endpoints.get(`${method} ${path}`)
    if (endpoint?._tag === "Check") return yield* check(visit, endpoint)
    if (endpoint?._tag === "Probe") return yield* probe(visit, endpoint)
    if (endpoint?._tag === "TestService") return yield* testService(visit, endpoint)
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

/** The arrival of a call that has no VAT ID, such as a probe. */
const noTarget = { probe: true, vatId: null, requester: null } as const

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
const noted = (response: ServerResponse, call: Call, work: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.onExit(work, (exit) => call.finish(response.headersSent ? response.statusCode : null, Exit.hasInterrupts(exit)))

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
