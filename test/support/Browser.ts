/** Opens pages in Chromium, if it is installed. */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"

export const hasChromium = spawnSync("chromium", ["--version"]).status === 0

const Message = Schema.Struct({
  id: Schema.optionalKey(Schema.Int),
  method: Schema.optionalKey(Schema.String),
  params: Schema.optionalKey(Schema.Json),
  result: Schema.optionalKey(Schema.Json),
  sessionId: Schema.optionalKey(Schema.String)
})
const decodeMessage = Schema.decodeUnknownSync(Schema.fromJsonString(Message))
const Target = Schema.Struct({ targetId: Schema.String })
const Session = Schema.Struct({ sessionId: Schema.String })
const Evaluated = Schema.Struct({ result: Schema.Struct({ value: Schema.optionalKey(Schema.Json) }) })

/** Starts Chromium without a window, and connects to its debugging port. */
const connect = Effect.gen(function* () {
  const profile = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-chromium-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  )
  const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`]
  const browser = yield* Effect.acquireRelease(
    Effect.sync(() => spawn("chromium", options, { stdio: ["ignore", "ignore", "pipe"] })),
    (started) =>
      Effect.callback<void>((resume) => {
        started.once("exit", () => resume(Effect.void))
        started.kill("SIGKILL")
      })
  )
  const address = yield* Effect.callback<string>((resume) => {
    let written = ""
    browser.stderr.on("data", (chunk) => {
      written += String(chunk)
      const [, found] = /DevTools listening on (ws:\S+)/u.exec(written) ?? []
      if (found !== undefined) resume(Effect.succeed(found))
    })
  })
  return yield* Effect.callback<WebSocket>((resume) => {
    const socket = new WebSocket(address)
    socket.addEventListener("open", () => resume(Effect.succeed(socket)))
  })
})

/** Returns a promise of an expression of the first element that a selector selects, as soon as it exists. */
const whenHere = (selector: string, expression: string) => `new Promise((resolve) => {
  const look = () => {
    const found = document.querySelector(${JSON.stringify(selector)})
    if (found === null) requestAnimationFrame(look)
    else resolve(${expression})
  }
  look()
})`

/** Opens a page. `evaluate` returns the value of an expression, and `events` are the events of the page so far, with their parameters. */
export const open = Effect.fnUntraced(function* (url: string) {
  const socket = yield* connect
  const waiting = new Map<number, (result: Schema.Json) => void>()
  const events = new Array<string>()
  socket.addEventListener("message", ({ data }) => {
    const { id, method, params, result } = decodeMessage(String(data))
    if (id === undefined) events.push(`${method} ${JSON.stringify(params)}`)
    else waiting.get(id)?.(result ?? null)
  })
  const send = (method: string, params: object, sessionId?: string) =>
    Effect.callback<Schema.Json>((resume) => {
      const id = waiting.size + 1
      waiting.set(id, (result) => resume(Effect.succeed(result)))
      socket.send(JSON.stringify({ id, method, params, sessionId }))
    })
  const { targetId } = Schema.decodeUnknownSync(Target)(yield* send("Target.createTarget", { url: "about:blank" }))
  const attached = yield* send("Target.attachToTarget", { targetId, flatten: true })
  const { sessionId } = Schema.decodeUnknownSync(Session)(attached)
  for (const domain of ["Page", "Network", "Log", "Runtime", "Audits"]) yield* send(`${domain}.enable`, {}, sessionId)
  yield* send("Page.navigate", { url }, sessionId)
  const evaluate = (expression: string) =>
    send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }, sessionId).pipe(
      Effect.map((evaluated) => Schema.decodeUnknownSync(Evaluated)(evaluated).result.value ?? null)
    )
  return {
    evaluate,
    events,
    /** Clicks on the first element that a selector selects, as soon as it exists. */
    click: (selector: string) => evaluate(whenHere(selector, "found.click()")),
    /** Returns the text of the first element that a selector selects, as soon as it exists. */
    textOf: (selector: string) => Effect.map(evaluate(whenHere(selector, "found.innerText")), String)
  }
})
