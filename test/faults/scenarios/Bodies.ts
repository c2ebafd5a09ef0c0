/** Five clients send bodies whose reading could take long, while another client asks for `/health`. */
import { Array as Arr, Effect, Option, Schedule, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { ChildProcess } from "effect/process"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as RawHttp from "#test/support/RawHttp.ts"

const keys = 5
/** The uploads of one key that the service reads at the same time. */
const perKey = 2
const bodyBytes = 2_000_000
const itemBytes = 1_900
const maxDelayMs = 100
const health = { spacedMs: 10, samples: 500 }
/** Pause after a response, because an invalid body is refused within a millisecond. */
const pause = "2 millis"

const batches = "/v1/batches"
const [json, ndjson, csv] = ["application/json", "application/x-ndjson", "text/csv"]

/** Returns a body of `bodyBytes` without an end, so that the service reads all of it and then refuses it. */
const bodyOf = (first: string, item: (number: number) => string, between: string) =>
  first + Arr.makeBy(Math.ceil(bodyBytes / (item(0).length + between.length)), item).join(between)
const object = (number: number, more = "") => `{"custom_id":"${number}",${more}"vat_id":"ATU${10_000_000 + number}"}`
const header = "custom_id,vat_id,more\n"

/** Bodies by the name of their shape: the path, the content type and the body. */
const shapes: Record<string, readonly [path: string, type: string, body: string]> = {
  "JSON, ordinary items": [batches, json, bodyOf('{"items":[', object, ",")],
  "JSON, line breaks in items": [batches, json, bodyOf('{"items":[', (number) => object(number, "\n".repeat(itemBytes)), ",")],
  "JSON, blanks in items": [batches, json, bodyOf('{"items":[', (number) => object(number, " ".repeat(itemBytes)), ",")],
  "JSON, nesting": [batches, json, `{"items":[${'{"a":['.repeat(bodyBytes / 6)}`],
  "JSON, quotation marks and escapes": [batches, json, `{"items":[{"custom_id":"${'\\"'.repeat(bodyBytes / 2)}`],
  "JSON, empty lines": [batches, json, `{"items":[${"\n".repeat(bodyBytes)}`],
  "NDJSON, ordinary items": [batches, ndjson, `${bodyOf("", object, "\n")}\n{`],
  "NDJSON, blanks in items": [batches, ndjson, bodyOf("", (number) => object(number, " ".repeat(itemBytes)), "\n")],
  "NDJSON, lines of a blank": [batches, ndjson, " \n".repeat(bodyBytes / 2)],
  "CSV, ordinary rows": [batches, csv, `${bodyOf("custom_id,vat_id\n", (number) => `${number},ATU${number}`, "\n")}\n"`],
  "CSV, line breaks in cells": [batches, csv, bodyOf(header, (number) => `${number},,"${"\n".repeat(itemBytes)}"`, "\n")],
  "CSV, quotation marks": [batches, csv, bodyOf(header, (number) => `${number},,"${'""'.repeat(itemBytes / 2)}"`, "\n")],
  "CSV, empty lines": [batches, csv, "\n".repeat(bodyBytes)],
  "a validation, nesting": ["/v1/validations", json, "[".repeat(bodyBytes)]
}

/** A program that asks for a URL at fixed times, whatever the earlier responses take, and prints the times of the responses. */
const askHealth = `
  const ask = async () => {
    const started = performance.now()
    await (await fetch(process.argv[1])).text()
    return performance.now() - started
  }
  for (let number = 0; number < 20; number += 1) await ask()
  const all = Array.from({ length: ${health.samples} }, async (_, number) => {
    await new Promise((resolve) => setTimeout(resolve, number * ${health.spacedMs}))
    return ask()
  })
  console.log(JSON.stringify(await Promise.all(all)))`
const decodeTimes = Schema.decodeEffect(Schema.fromJsonString(Schema.Array(Schema.Number)))

const quantile = (times: ReadonlyArray<number>, share: number) =>
  Math.round(times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0)

export const bodies = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const service = yield* Scenario.replica(server.url, { SIGNUPS_PER_DAY: "100" })
  const http = yield* HttpClient.HttpClient
  const senders = yield* Effect.replicateEffect(service.newKey, keys)
  const port = Number(new URL(service.baseUrl).port)

  /** Returns the times of the responses. A process of its own measures them, so that the bodies do not delay the client. */
  const measured = Effect.gen(function* () {
    const handle = yield* ChildProcess.make(
      process.execPath,
      ["--input-type=module", "-e", askHealth, `${service.baseUrl}/health`],
      { stdin: "ignore" }
    )
    return yield* decodeTimes(yield* Stream.mkString(Stream.decodeText(handle.stdout)))
  }).pipe(Effect.scoped)
  const during = <E, R>(attack: (key: string) => Effect.Effect<unknown, E, R>) => {
    const attacks = senders.flatMap((key) =>
      Arr.makeBy(perKey, () => Effect.forever(Effect.delay(Effect.ignore(attack(key)), pause)))
    )
    return Effect.raceFirst(measured, Effect.all(attacks, { concurrency: "unbounded" }))
  }
  const send = ([path, type, body]: readonly [string, string, string]) => {
    const bytes = new TextEncoder().encode(body)
    return (key: string) =>
      HttpClientRequest.post(service.baseUrl + path).pipe(
        HttpClientRequest.setHeader("x-api-key", key),
        HttpClientRequest.bodyUint8Array(bytes, type),
        http.execute,
        Effect.flatMap((response) => response.text)
      )
  }
  /** Sends the beginning of a body, then one byte at a time for a second, or leaves at once. */
  const begin = (leaves: boolean) => (key: string) =>
    Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* RawHttp.open(port)
        const head = [
          `POST ${batches} HTTP/1.1`,
          "host: x",
          `x-api-key: ${key}`,
          `content-type: ${json}`,
          `content-length: ${bodyBytes}`
        ]
        yield* connection.send(
          `${head.join("\r\n")}\r\n\r\n${bodyOf('{"items":[', object, ",").slice(0, leaves ? 500_000 : 2_000)}`
        )
        if (leaves) return yield* connection.leave
        yield* Effect.repeat(connection.send("\n"), { schedule: Schedule.spaced("5 millis"), times: 200 })
      })
    )

  const alone = quantile(yield* measured, 0.99)
  const results: Array<{ readonly shape: string; readonly p99: number; readonly max: number }> = []
  const add = (shape: string, times: ReadonlyArray<number>) =>
    results.push({ shape, p99: quantile(times, 0.99), max: quantile(times, 1) })
  for (const [shape, body] of Object.entries(shapes)) add(shape, yield* during(send(body)))
  add("JSON, one byte at a time", yield* during(begin(false)))
  add("JSON, aborted", yield* during(begin(true)))
  const worst = Option.getOrThrow(Option.fromUndefinedOr(results.toSorted((a, b) => b.p99 - a.p99)[0]))
  return {
    claims: [
      {
        statement: `bodies of ${keys} keys delay the p99 of /health by ${worst.p99 - alone} ms at most (${worst.shape})`,
        holds: worst.p99 - alone <= maxDelayMs
      }
    ],
    notes: [
      `/health without the bodies: p99 ${alone} ms`,
      ...results.map(({ max, p99, shape }) => `${shape}: p99 ${p99} ms, slowest ${max} ms`)
    ]
  } satisfies Scenario.Trial
})
