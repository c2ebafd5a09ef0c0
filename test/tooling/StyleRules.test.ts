import { assert, describe, it } from "@effect/vitest"
import { configuration, lintPlanted } from "#test/tooling/Planted.ts"

interface Violation {
  readonly rule: string
  /** Folder of the planted file. Default: `src/domain`. */
  readonly folder?: string
  /** The text of a file that exports `name`, which is also the name of the file. */
  readonly text: (name: string) => string
}

const statement = (code: string) => (name: string) =>
  `import { Effect } from "effect"\n\nexport const ${name} = Effect.void\n\n${code}\n`

const body = (code: string) => (name: string) =>
  `import { Effect } from "effect"\n\nexport const ${name} = Effect.fnUntraced(function* (input: string) {\n  ${code}\n  yield* Effect.log(input)\n})\n`

const expression = (code: string) => (name: string) => `export const ${name} = (input: unknown) => [input, ${code}]\n`

const sql = (code: string) => (name: string) =>
  `import { Effect } from "effect"\nimport { SqlClient } from "effect/sql"\n\nexport const ${name} = Effect.fnUntraced(function* () {\n  const sql = yield* SqlClient.SqlClient\n  return yield* ${code}\n})\n`

const suite = (code: string) => () =>
  `import { assert, describe, it, layer } from "@effect/vitest"\nimport { Effect, Layer } from "effect"\nimport { vi } from "vitest"\n\nconst parts = { assert, describe, Effect, it, layer, Layer, vi }\n\nit.effect("is clean", () => Effect.sync(() => assert.isDefined(parts)))\n\n${code}\n`

const times = (count: number, line: string) => `${line}\n`.repeat(count)

const violations: ReadonlyArray<Violation> = [
  { rule: "typescript/no-explicit-any", text: (name) => `export const ${name} = (input: any) => [input]\n` },
  { rule: "typescript/no-non-null-assertion", text: (name) => `export const ${name} = (input: string | null) => input!\n` },
  { rule: "typescript/consistent-type-assertions", text: expression("input as string") },
  { rule: "typescript/consistent-type-assertions", text: expression("<string>input") },
  { rule: "typescript/consistent-type-assertions", text: expression("{} as unknown") },
  { rule: "typescript/ban-ts-comment", text: expression("// @ts-ignore because\ninput") },
  { rule: "typescript/ban-ts-comment", text: expression("// @ts-expect-error\ninput") },
  { rule: "typescript/consistent-type-imports", text: (name) => `export type ${name} = import("#domain/vat/VatId.ts").VatId\n` },
  { rule: "vatproof/no-definite-assignment", text: (name) => `export class ${name} {\n  readonly value!: string\n}\n` },
  { rule: "oxc/no-async-await", text: expression("async () => input") },
  { rule: "node/no-top-level-await", text: statement("export const second = await Effect.void") },
  { rule: "vatproof/no-throw", text: body('if (input === "") throw new Error(input)') },
  { rule: "vatproof/no-try", text: body("try {\n    yield* Effect.void\n  } finally {\n    yield* Effect.log(input)\n  }") },
  { rule: "vatproof/no-effect-run", text: expression("Effect.runSync(input)") },
  { rule: "vatproof/no-effect-run", text: expression("Effect.runForkWith(input)") },
  { rule: "vatproof/no-effect-run", folder: "test/domain", text: suite('it("runs", () => Effect.runPromise(Effect.void))') },
  { rule: "vatproof/no-floating-effect", text: body('Effect.log("lost")') },
  { rule: "vatproof/no-floating-effect", text: body("Effect.void.pipe(Effect.delay(1))") },
  { rule: "vatproof/yield-star", text: body('yield Effect.log("lost")') },
  { rule: "no-console", text: statement('console.log("hello")') },
  { rule: "no-console", folder: "test/domain", text: suite('console.log("hello")') },
  { rule: "node/no-process-env", text: expression('process.env["PORT"]') },
  { rule: "node/no-process-env", folder: "src/infra", text: expression("process.env") },
  { rule: "unicorn/no-process-exit", text: statement("export const stop = () => process.exit(1)") },
  {
    rule: "unicorn/prefer-node-protocol",
    folder: "src/infra",
    text: (name) => `import fs from "fs"\n\nexport const ${name} = fs\n`
  },
  { rule: "max-lines", text: statement(`export const rows = [\n${times(300, "  1,")}]`) },
  { rule: "max-lines-per-function", text: body(times(70, "  yield* Effect.void")) },
  { rule: "max-depth", text: body("if (input) { ".repeat(5) + "yield* Effect.void" + " }".repeat(5)) },
  { rule: "eqeqeq", text: expression("input == 1") },
  { rule: "prefer-const", text: body("let other = input\n  yield* Effect.log(other)") },
  { rule: "no-var", text: body("var other = input\n  yield* Effect.log(other)") },
  { rule: "import/no-default-export", text: (name) => `export const ${name} = 1\n\nexport default ${name}\n` },
  {
    rule: "import/no-duplicates",
    text: (name) => `import { Effect } from "effect"\nimport { Layer } from "effect"\n\nexport const ${name} = [Effect, Layer]\n`
  },
  { rule: "import/no-unassigned-import", text: (name) => `import "effect"\n\nexport const ${name} = 1\n` },
  { rule: "no-unused-vars", text: statement("const unused = 1") },
  { rule: "vatproof/no-re-export", text: (name) => `export { Effect as ${name} } from "effect"\n` },
  { rule: "vatproof/no-computed-import", text: (name) => `export const ${name} = (module: string) => import(module)\n` },
  { rule: "vatproof/sql-named-columns", folder: "src/events", text: sql("sql`SELECT * FROM events`") },
  { rule: "vatproof/sql-named-columns", folder: "src/events", text: sql("sql`select e.* from events e where id = ${1}`") },
  { rule: "vatproof/sql-result-schema", folder: "src/events", text: sql("sql<{ readonly id: string }>`SELECT id FROM events`") },
  { rule: "unicorn/no-abusive-eslint-disable", text: statement("/* oxlint-disable */\nthrow new Error()") },
  {
    rule: "vatproof/suppression-reason",
    text: body('// oxlint-disable-next-line vatproof/no-throw\n  if (input === "") throw input')
  },
  { rule: "vatproof/suppression-reason", text: statement("// oxfmt-ignore") },
  ...[
    "it.skip",
    "it.only",
    "it.todo",
    "it.effect.skip",
    "it.effect.only",
    "describe.skip",
    "describe.only",
    "it.skipIf(true)"
  ].map((call) => ({ rule: "vatproof/no-skipped-test", folder: "test/domain", text: suite(`${call}("is planted", () => {})`) })),
  ...["Date.now()", "new Date()", "performance.now()", "setTimeout(String, 1)", "globalThis.setTimeout(String, 1)"].map(
    (code) => ({
      rule: "no-restricted-globals",
      text: expression(code)
    })
  ),
  ...["setInterval(String, 1)", "setImmediate(String)", "queueMicrotask(String)", "Promise.all([])", 'fetch("/")'].map(
    (code) => ({
      rule: "no-restricted-globals",
      text: expression(code)
    })
  ),
  ...["setTimeout(String, 1)", "setInterval(String, 1)"].map((code) => ({
    rule: "no-restricted-globals",
    folder: "test/domain",
    text: suite(code)
  })),
  ...[
    "Math.random()",
    "crypto.randomUUID()",
    'JSON.parse("{}")',
    "Effect.orDie",
    "Effect.catch",
    "Effect.forkChild",
    "Effect.forkDetach"
  ].map((code) => ({ rule: "no-restricted-properties", text: expression(code) })),
  ...["Effect.sleep(1)", "Math.random()", "vi.mock", 'vi.spyOn(console, "log")'].map((code) => ({
    rule: "no-restricted-properties",
    folder: "test/domain",
    text: suite(`export const planted = [${code}]`)
  }))
]

/** Files by path that the lint rules must accept. */
const clean: Readonly<Record<string, string>> = {
  "src/domain/Clean.ts": `import { Context, Effect, Schema } from "effect"

export class NoneLeft extends Schema.TaggedError<NoneLeft>()("NoneLeft", { wanted: Schema.Int }) {}

export class Clean extends Context.Service<Clean, { readonly take: Effect.Effect<number, NoneLeft> }>()("vatproof/domain/Clean") {}

const kinds = ["some", "none"] as const

export const take = Effect.fn("Clean.take")(function* (kind: (typeof kinds)[number], _context: unknown) {
  if (kind === "none") return yield* new NoneLeft({ wanted: 1 })
  const { take } = yield* Clean
  return yield* take.pipe(Effect.catchTag("NoneLeft", Effect.die))
})
`,
  "src/domain/Plans.ts": "export const plan = 1\n\nexport const other = 2\n",
  "src/infra/Clock.ts": `import { Effect } from "effect"

export const make = Effect.tryPromise({
  try: () => import("node:fs/promises"),
  // oxlint-disable-next-line vatproof/no-throw, no-console -- planted: two rules and a reason
  catch: () => { throw console.error("planted") }
})
`,
  "src/domain/Counter.ts": "export function* counter(limit: number) {\n  for (let n = 0; n < limit; n++) yield n\n}\n",
  "src/infra/config/AppConfig.ts": "export const appConfig = process.env\n",
  "src/infra/sources/Vies.ts": 'import { Layer } from "effect"\n\nexport const layer = Layer.empty\n',
  "src/main.ts":
    'import * as NodeRuntime from "@effect/platform-node/NodeRuntime"\nimport { Effect } from "effect"\n\nNodeRuntime.runMain(Effect.void)\n',
  "test/domain/Clean.test.ts": suite(`describe("time", () => { it("is here", () => assert.isDefined(new Date())) })`)(),
  "test/benchmarks/Append.ts": 'console.log("15000 events/s")\n',
  "vitest.config.ts": 'import { defineConfig } from "vitest/config"\n\nexport default defineConfig({})\n'
}

const planted = violations.map((violation, index) => {
  const name = `Planted${index}`
  return { ...violation, path: `${violation.folder ?? "src/domain"}/${name}.ts`, text: violation.text(name) }
})

const cycle: Readonly<Record<string, string>> = {
  "src/domain/Hen.ts": 'import * as Egg from "#domain/Egg.ts"\n\nexport const hen = () => Egg\n',
  "src/domain/Egg.ts": 'import * as Hen from "#domain/Hen.ts"\n\nexport const egg = () => Hen\n'
}

const broken = lintPlanted({ ...Object.fromEntries(planted.map(({ path, text }) => [path, text])), ...clean, ...cycle })

describe("the lint rules", () => {
  it.each(planted)("reject a violation of $rule (case %#)", ({ path, rule, text }) =>
    assert.deepStrictEqual(broken.get(path), [rule], text)
  )

  it.each(Object.keys(clean))("accept %s", (path) => assert.deepStrictEqual(broken.get(path), []))

  it.each(Object.keys(cycle))("detect the import cycle of %s", (path) =>
    assert.deepStrictEqual(broken.get(path), ["import/no-cycle"])
  )

  it("are all tested with an example that violates the rule", () => {
    const configured = [...configuration.matchAll(/"([\w/-]+)": (?:\[\s*)?"error"/gu)].map(([, rule]) => rule)
    const elsewhere = ["correctness", "suspicious", "reportUnusedDisableDirectives", "no-restricted-imports", "import/no-cycle"]
    const expected = new Set([...planted.map(({ rule }) => rule), ...elsewhere])
    assert.deepStrictEqual(new Set(configured), expected)
  })
})
