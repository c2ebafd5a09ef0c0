/** Runs go-verify/main.go, which uses Go's packages for transparency logs. `hasGo` is false if Go or the packages are not installed. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"

/** The folder of the sources in Debian's golang-golang-x-mod-dev; Go calls it a GOPATH. */
const goPath = "/usr/share/gocode"
const goEnvironment = { PATH: "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", GO111MODULE: "off", GOPATH: goPath }
export const hasGo =
  existsSync(`${goPath}/src/golang.org/x/mod/sumdb/tlog/tlog.go`) &&
  spawnSync("go", ["help"], { env: goEnvironment }).status === 0

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-go-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

export const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

const Answer = Schema.Struct({
  opened: Schema.Array(Schema.String),
  signed: Schema.Array(Schema.String),
  roots: Schema.Array(Schema.String),
  inclusion: Schema.Record(Schema.String, Schema.Array(Schema.String)),
  tiles: Schema.Record(Schema.String, Schema.String),
  read: Schema.Int,
  proved: Schema.Array(Schema.Int)
})

/** Runs the Go program on an input. Fails with a message if a verification fails. */
export const askGo = Effect.fnUntraced(function* (question: object) {
  const cache = yield* temporaryFolder
  const ran = spawnSync("go", ["run", "main.go"], {
    cwd: join(import.meta.dirname, "go-verify"),
    input: JSON.stringify(question),
    encoding: "utf8",
    maxBuffer: 2 ** 26,
    env: { ...goEnvironment, GOCACHE: cache }
  })
  assert.strictEqual(ran.stderr, "")
  return yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Answer))(ran.stdout)
})
