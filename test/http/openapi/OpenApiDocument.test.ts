import { assert, it } from "@effect/vitest"
import { Predicate } from "effect"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import { MatchLetter, MatchWord } from "#domain/receipts/Receipt.ts"
import { errors } from "#http/pipeline/Errors.ts"
import { described, json, namedOperations, operations } from "#test/support/Description.ts"

/** Returns all objects within a value, with their paths. */
const partsOf = (value: unknown, place = "#"): ReadonlyArray<{ readonly place: string; readonly part: object }> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => partsOf(item, `${place}/${index}`))
  if (!Predicate.isObject(value)) return []
  return [{ place, part: value }, ...Object.entries(value).flatMap(([key, item]) => partsOf(item, `${place}/${key}`))]
}
const parts = partsOf(json)
const placesOf = (isMeant: (part: { readonly [key: string]: unknown }) => boolean) =>
  parts.filter(({ part }) => isMeant({ ...part })).map(({ place }) => place)

it.each(namedOperations)("%s and each of its parameters have a description", (_, { operation }) => {
  const { description = "", parameters, summary = "", tags } = operation
  assert.isNotEmpty(summary)
  assert.isNotEmpty(description)
  for (const { description = "", in: place, name } of parameters) {
    assert.isNotEmpty(description, name)
    // OpenAPI ignores parameters with these names, because media types and security schemes describe these headers.
    assert.isFalse(place === "header" && ["accept", "content-type", "authorization"].includes(name.toLowerCase()), name)
  }
  const named = new Set(described.tags.filter(({ description }) => description !== "").map(({ name }) => name))
  for (const tag of tags) assert.isTrue(named.has(tag), tag)
})

it.each(namedOperations)("%s declares exactly the parameters of its path", (_, { operation, path }) => {
  const inPath = operation.parameters.filter((parameter) => parameter.in === "path")
  assert.deepStrictEqual(
    Array.from(path.matchAll(/\{(\w+)\}/gu), ([, name]) => name),
    inPath.map(({ name }) => name)
  )
  for (const { name, required } of inPath) assert.isTrue(required, name)
  assert.notMatch(path, /[*:]/u)
})

it.each(namedOperations)(
  "%s refers to the shared error body, and explains the error codes that it can return",
  (_, { operation }) => {
    for (const [status, { content, description }] of Object.entries(operation.responses)) {
      if (Number(status) < 400) continue
      assert.deepStrictEqual(content["application/json"]?.schema, { $ref: "#/components/schemas/Error" }, status)
      const lines = description.split("\n")
      for (const line of lines) assert.match(line, /^- `[A-Z_]+`: .+\.$/u, status)
      for (const [, code] of description.matchAll(/^- `([A-Z_]+)`/gmu)) {
        assert.strictEqual(Object.entries(errors).find(([one]) => one === code)?.[1][0], Number(status), code)
      }
    }
  }
)

it("one schema component defines the error body with all error codes, and the introduction explains each code", () => {
  assert.containSubset(described.components.schemas["Error"], {
    properties: {
      error: { required: ["code", "message", "request_id"], properties: { code: { "x-extensible-enum": Object.keys(errors) } } }
    },
    required: ["error"]
  })
  for (const [code, [status]] of Object.entries(errors)) {
    assert.match(described.info.description, new RegExp(`^\\| ${status} \\| \`${code}\` \\| .+\\. \\|$`, "mu"))
  }
})

/** Statuses that have Retry-After besides 429 and 503, by operation id. */
const waits: Readonly<Record<string, ReadonlyArray<string>>> = {
  registerAgent: ["409"],
  validateVatId: ["409"],
  submitValidation: ["202", "409"],
  getValidation: ["200"],
  submitBatch: ["409"]
}

it.each(namedOperations)(
  "%s declares Retry-After for exactly the statuses that send it, and declares no header without a description",
  (_, { operation }) => {
    const waiting = ["429", "503", ...(waits[operation.operationId] ?? [])]
    for (const [status, { headers }] of Object.entries(operation.responses)) {
      assert.strictEqual("Retry-After" in headers, waiting.includes(status), status)
      for (const [name, { $ref }] of Object.entries(headers)) {
        assert.strictEqual($ref, `#/components/headers/${name}`)
        assert.isDefined(described.components.headers[name], name)
      }
    }
  }
)

it("every described header belongs to a response of an operation", () => {
  const named = new Set(
    operations.flatMap(({ operation }) => Object.values(operation.responses).flatMap(({ headers }) => Object.keys(headers)))
  )
  assert.deepStrictEqual(
    Object.keys(described.components.headers).filter((name) => !named.has(name)),
    []
  )
})

it("schemas use only JSON Schema features that client generators support", () => {
  const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)
  assert.deepStrictEqual(
    placesOf(({ allOf, anyOf, oneOf }) => [allOf, anyOf, oneOf].some((one) => isList(one) && one.length < 2)),
    []
  )
  // An empty schema accepts any value, so it must not be an alternative.
  assert.deepStrictEqual(
    placesOf(({ anyOf }) => isList(anyOf) && anyOf.some((one) => Object.keys(Object(one)).length === 0)),
    []
  )
  assert.deepStrictEqual(
    placesOf(({ additionalProperties }) => additionalProperties === false),
    []
  )
  assert.deepStrictEqual(
    placesOf(({ format, pattern }) => typeof format === "string" && typeof pattern === "string"),
    []
  )
  const counts = placesOf(({ type }) => type === "integer")
  assert.isNotEmpty(counts)
  assert.deepStrictEqual(
    placesOf(({ minimum, type }) => type === "integer" && !(typeof minimum === "number" && minimum >= 0)),
    []
  )
  assert.deepStrictEqual(
    placesOf(({ maximum }) => maximum === Number.MAX_SAFE_INTEGER),
    []
  )
})

it("fields with the name of a time, such as created_at, have the format date-time", () => {
  const times = parts.flatMap(({ part, place }) =>
    /\/properties\/(?:\w+_at|timestamp|source_timestamp|last_checked|start|end)$/u.test(place) ? [{ part, place }] : []
  )
  assert.isAtLeast(times.length, 10)
  for (const { part, place } of times) assert.include(JSON.stringify(part), '"format":"date-time"', place)
})

it("operation ids are unique, and are valid method names of a generated client", () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  for (const id of ids) assert.match(id, /^[a-z]+(?:[A-Z][a-z]+)+$/u)
  assert.strictEqual(new Set(ids).size, ids.length)
  assert.includeMembers(ids, ["validateVatId", "listApiKeys", "getUsage"])
})

it("enums of comparison results have a fixed list of values; all other enums are declared as extensible", () => {
  const closed = new Set([...MatchWord.literals, ...MatchLetter.literals, true])
  const enums = partsOf(described.components.schemas).flatMap(({ part }) =>
    "enum" in part && Array.isArray(part.enum) ? [part.enum] : []
  )
  assert.isNotEmpty(enums)
  for (const values of enums) for (const value of values) assert.isTrue(closed.has(value), String(value))
  assert.containSubset(described.components.schemas["Usage"], {
    properties: { plan: { type: "string", "x-extensible-enum": PlanName.literals } }
  })
})

it.each(namedOperations)("%s declares an error response", (_, { operation }) =>
  assert.isTrue(Object.keys(operation.responses).some((status) => status.startsWith("4")))
)
