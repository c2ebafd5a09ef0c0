import { assert, describe, it } from "@effect/vitest"
import { lintPlanted } from "#test/tooling/Planted.ts"

interface Reach {
  readonly may: ReadonlyArray<string>
  readonly mayNot: ReadonlyArray<string>
}

const list = (specifiers: string): ReadonlyArray<string> => specifiers.trim().split(/\s+/u)

/** Allowed and forbidden imports of each folder. */
const reaches: Readonly<Record<string, Reach>> = {
  "src/domain": {
    may: list("effect #domain/vat/VatId.ts"),
    mayNot: list(`
      effect/Schema effect/sql effect/http effect/http-api effect/persistence effect/testing @effect/sql-pg
      @effect/platform-node node:fs node:crypto nodemailer vitest #events/log/store/EventStore.ts #events/log/projections/Usage.ts #infra/sources/Vies.ts
      #infra/sandbox/Fault.ts #http/Api.ts #app/app.ts #test/support/Database.ts ./VatId.ts ../events/EventStore.ts
    `)
  },
  "src/events": {
    may: list(`
      effect effect/sql effect/sql/SqlError effect/encoding @effect/sql-pg
      #domain/vat/VatId.ts #events/log/store/EventStore.ts #events/log/projections/Usage.ts
    `),
    mayNot: list(`
      effect/Schema effect/http effect/http-api effect/persistence effect/crypto @effect/platform-node node:fs nodemailer #infra/postgres/Postgres.ts #http/Api.ts
      #app/app.ts #test/support/Database.ts ./EventStore.ts ../domain/VatId.ts
    `)
  },
  "src/domain/kernel": {
    may: list("effect #domain/kernel/Crypto.ts #domain/text/PlainText.ts"),
    mayNot: list("#domain/vat/VatId.ts #domain/callers/Caller.ts #events/log/store/EventStore.ts")
  },
  "src/domain/log": {
    may: list(
      "effect #domain/log/DomainEvent.ts #domain/kernel/Crypto.ts #domain/text/CalendarDate.ts #domain/telemetry/Metrics.ts"
    ),
    mayNot: list(`
      effect/sql #domain/vat/VatId.ts #domain/accounts/Account.ts #domain/accounts/keys/IssueApiKey.ts #domain/receipts/Receipt.ts
      #domain/pending/Batch.ts #domain/audit/Auditor.ts #domain/callers/Caller.ts #domain/validation/ValidationTask.ts
      #events/log/store/EventStore.ts #infra/postgres/Postgres.ts #http/Api.ts ./DomainEvent.ts ../vat/VatId.ts
    `)
  },
  "src/events/log": {
    may: list("effect effect/sql #events/log/store/EventStore.ts #domain/log/DomainEvent.ts"),
    mayNot: list("#events/Catalogue.ts #events/pending/BatchAudit.ts #domain/vat/VatId.ts")
  },
  "src/events/log/projections": {
    may: list(`
      effect effect/sql effect/sql/SqlError effect/encoding @effect/sql-pg #events/log/store/EventStore.ts
      #domain/log/DomainEvent.ts #domain/kernel/Crypto.ts #domain/text/CsvText.ts #domain/telemetry/Metrics.ts #domain/concurrency/Worker.ts
    `),
    mayNot: list(`
      node:crypto #events/Catalogue.ts #events/ProjectionCatalogue.ts #events/vat/PgAnswerCache.ts #events/receipts/PgReceipts.ts
      #events/accounts/Outbox.ts #events/callers/PgIdentity.ts #events/audit/EventIndex.ts #events/pending/PgBatchStore.ts
      #domain/vat/VatId.ts #domain/accounts/Account.ts #domain/receipts/Receipt.ts #domain/pending/Batch.ts #domain/audit/Auditor.ts
      #domain/callers/Caller.ts #domain/validation/ValidationTask.ts #infra/postgres/Postgres.ts #http/Api.ts #app/layers/LogCatalogue.ts ../store/EventStore.ts
    `)
  },
  "src/infra": {
    may: list(`
      effect effect/http effect/persistence @effect/platform-node/NodeHttpServer @effect/sql-pg node:fs nodemailer
      #domain/vat/VatId.ts #infra/postgres/Postgres.ts #infra/sandbox/Fault.ts
    `),
    mayNot: list(`
      #events/log/store/EventStore.ts #events/Catalogue.ts #events/log/merkle/Tiles.ts #events/log/projections/Usage.ts #http/Api.ts #app/app.ts #test/support/Database.ts
      ./Postgres.ts @effect/platform-node
      ../domain/VatId.ts node:timers/promises vitest @effect/vitest effect/testing testcontainers @testcontainers/postgresql
    `)
  },
  "src/infra/sandbox": {
    may: list("effect/http node:http #domain/vat/VatId.ts #infra/sandbox/Fault.ts"),
    mayNot: list("#events/log/projections/Usage.ts #http/Api.ts ./Fault.ts ../Vies.ts")
  },
  "src/http": {
    may: list(`
      effect effect/http effect/http/HttpServerResponse effect/http-api effect/net
      #domain/vat/VatId.ts #http/pipeline/FailureResponses.ts
    `),
    mayNot: list(`
      #events/log/projections/Usage.ts effect/Schema effect/sql effect/persistence @effect/sql-pg @effect/platform-node node:http nodemailer #events/log/store/EventStore.ts
      #events/log/projections/Projections.ts #infra/postgres/Postgres.ts #app/app.ts #test/support/Database.ts ./FailureResponses.ts ../domain/VatId.ts
    `)
  },
  "src/layers": {
    may: list("effect #app/layers/Sources.ts #events/log/store/EventStore.ts #infra/sources/Vies.ts #http/Api.ts"),
    mayNot: list("#test/support/Database.ts ./Sources.ts @effect/platform-node node:timers/promises vitest")
  },
  src: {
    may: list(`
      effect effect/cli @effect/platform-node/NodeRuntime node:os
      #domain/vat/VatId.ts #events/log/store/EventStore.ts #infra/sources/Vies.ts #http/Api.ts #app/app.ts
    `),
    mayNot: list(`
      #test/support/Database.ts ./app.ts ../test/support/Database.ts @effect/platform-node node:timers/promises
      vitest @effect/vitest effect/testing testcontainers @testcontainers/postgresql
    `)
  },
  "test/domain": {
    may: list(`
      effect effect/testing @effect/vitest @effect/platform-node/NodeServices vitest node:fs
      #domain/vat/VatId.ts #events/log/store/EventStore.ts #infra/sources/Vies.ts #http/Api.ts #app/app.ts #test/support/Database.ts
    `),
    mayNot: list("../../src/domain/vat/VatId.ts ./VatId.test.ts @effect/platform-node node:timers/promises")
  }
}

interface Form {
  readonly text: (name: string, specifier: string) => string
  /** Lint rules that this form violates with any import. */
  readonly always: ReadonlyArray<string>
}

const importsNamespace: Form = {
  text: (name, from) => `import * as Other from "${from}"\n\nexport const ${name} = Other\n`,
  always: []
}

/** All forms of imports, because a form that the lint rule overlooks could bypass the import rules. */
const forms: Readonly<Record<string, Form>> = {
  "a namespace import": importsNamespace,
  "a named import": {
    text: (name, from) => `import { other } from "${from}"\n\nexport const ${name} = other\n`,
    always: []
  },
  "a type import": {
    text: (name, from) => `import type { Other } from "${from}"\n\nexport type ${name} = Other\n`,
    always: []
  },
  "an import without names": {
    text: (name, from) => `import "${from}"\n\nexport const ${name} = 1\n`,
    always: ["import/no-unassigned-import"]
  },
  "an import by require": {
    text: (name, from) => `import Other = require("${from}")\n\nexport const ${name} = Other\n`,
    always: []
  },
  "a dynamic import": {
    text: (name, from) => `export const ${name} = () => import("${from}")\n`,
    always: []
  },
  "a re-export": {
    text: (name, from) => `export { ${name} } from "${from}"\n`,
    always: ["vatproof/no-re-export"]
  },
  "a re-export of everything": {
    text: (name, from) => `export * from "${from}"\n\nexport const ${name} = 1\n`,
    always: ["vatproof/no-re-export"]
  }
}

interface Case {
  readonly folder: string
  readonly name: string
  readonly form: Form
  readonly specifier: string
  readonly allowed: boolean
}

const byFolder: ReadonlyArray<Case> = Object.entries(reaches).flatMap(([folder, { may, mayNot }]) => [
  ...may.map((specifier) => ({
    folder,
    name: `accept the import of ${specifier} in ${folder}`,
    form: importsNamespace,
    specifier,
    allowed: true
  })),
  ...mayNot.map((specifier) => ({
    folder,
    name: `reject the import of ${specifier} in ${folder}`,
    form: importsNamespace,
    specifier,
    allowed: false
  }))
])

const byForm: ReadonlyArray<Case> = Object.entries(forms).flatMap(([name, form]) =>
  [
    { folder: "src/domain", specifier: "#events/log/store/EventStore.ts" },
    { folder: "src/domain/log", specifier: "#domain/vat/VatId.ts" },
    { folder: "src/events", specifier: "#infra/postgres/Postgres.ts" },
    { folder: "src/events/log/store", specifier: "#events/receipts/PgReceipts.ts" },
    { folder: "src/infra", specifier: "#http/Api.ts" },
    { folder: "src/http", specifier: "#events/log/store/EventStore.ts" },
    { folder: "src", specifier: "#test/support/Database.ts" },
    { folder: "test/domain", specifier: "../../src/domain/vat/VatId.ts" }
  ].map((planted) => ({ ...planted, name: `reject ${name} that breaks a rule in ${planted.folder}`, form, allowed: false }))
)

const planted = [...byFolder, ...byForm].map((one, index) => {
  const name = `Planted${index}`
  return {
    ...one,
    path: `${one.folder}/${name}.ts`,
    text: one.form.text(name, one.specifier),
    expected: one.allowed ? one.form.always : ["no-restricted-imports", ...one.form.always].toSorted()
  }
})

const broken = lintPlanted(Object.fromEntries(planted.map(({ path, text }) => [path, text])))

describe("the import rules", () => {
  it.each(planted.map((one) => [one.name, one] as const))("%s", (_, { expected, path }) =>
    assert.deepStrictEqual(broken.get(path), expected)
  )
})
