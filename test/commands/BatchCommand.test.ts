import { Duration, Effect, FileSystem, Path } from "effect"
import { connect, type Socket } from "node:net"
import { commandWith } from "#test/support/CommandLine.ts"
import { settings } from "#test/support/Operations.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as TcpServer from "#test/support/TcpServer.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Writes a CSV file of customers. Returns its path and a path for the results. */
const listOf = Effect.fnUntraced(function* (...rows: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  yield* fs.writeFileString(`${folder}/customers.csv`, ["custom_id,vat_id", ...rows].join("\n"))
  return { file: `${folder}/customers.csv`, out: `${folder}/results.csv` }
})

const batch = Effect.fnUntraced(function* (key: string, ...args: ReadonlyArray<string>) {
  const { baseUrl } = yield* RunningService.RunningService
  return yield* commandWith({ API_KEY: key }, "batch", "--url", baseUrl, ...args)
})

layer(RunningService.layerShared(settings), { excludeTestServices: true })("`vatproof batch`", (it) => {
  it.effect("writes one row of results for each item, in the order of the file", function* () {
    const { newKey } = yield* RunningService.RunningService
    const fs = yield* FileSystem.FileSystem
    const { file, out } = yield* listOf("a,ATU10550001", "b,nonsense", "c,AT U10550001", "d,ATU10550002")
    const { failure, output } = yield* batch(yield* newKey, file, "--out", out)
    assert.isNull(failure)
    assert.include(output, "The batch is finished. Of 4 items: 2 answered, 1 with invalid format, 1 duplicates.")
    const rows = (yield* fs.readFileString(out)).trimEnd().split("\r\n")
    assert.deepStrictEqual(
      rows.map((row) => row.split(",").slice(0, 4).join(",")),
      [
        "custom_id,vat_id,status,valid",
        '"a","ATU10550001","final",true',
        '"b","nonsense","invalid_format",',
        '"c","ATU10550001","final",true',
        '"d","ATU10550002","final",true'
      ]
    )
  })

  it.effect("writes the results so far when the quota is used up, and all results in a later run with `--resume`", function* () {
    const { newKey, travel } = yield* RunningService.RunningService
    const fs = yield* FileSystem.FileSystem
    const key = yield* newKey
    yield* RunningService.setQuota(key, 1)
    const { file, out } = yield* listOf("a,ATU10550003", "b,ATU10550004")
    const paused = yield* batch(key, file, "--out", out)
    assert.match(paused.failure ?? "", /^The monthly quota is used up until 20\d\d-.*--resume [0-9a-f-]{36}$/u)
    assert.match(yield* fs.readFileString(out), /"pending",/u)
    yield* RunningService.setQuota(key, 10)
    yield* travel("5 seconds")
    const id = paused.failure?.split(" ").at(-1) ?? ""
    const rest = yield* batch(key, "--resume", id, "--out", out, "--json")
    assert.isNull(rest.failure)
    assert.include(rest.output, '"final": 2')
    assert.notInclude(yield* fs.readFileString(out), "pending")
  })

  it.effect("rejects a malformed row with its line number, and writes no results", function* () {
    const { newKey } = yield* RunningService.RunningService
    const fs = yield* FileSystem.FileSystem
    const { file, out } = yield* listOf("a,ATU10550001", 'b,"ATU')
    const { failure } = yield* batch(yield* newKey, file, "--out", out)
    assert.strictEqual(failure, "line 3: A quoted cell must end with a quotation mark")
    assert.isFalse(yield* fs.exists(out))
  })

  it.effect("fails with a message that names the missing or rejected argument", function* () {
    const { newKey } = yield* RunningService.RunningService
    const { file, out } = yield* listOf("a,ATU10550001")
    assert.include((yield* commandWith({}, "batch", file, "--out", out)).failure, "Set API_KEY or API_KEY_FILE")
    assert.include((yield* batch("svc_live_unknown", file, "--out", out)).failure, "API key")
    assert.include((yield* batch("svc_live_unknown", "--out", out)).failure, "Give a file or --resume")
    const missing = yield* batch("svc_live_unknown", `${file}.absent`, "--out", out)
    assert.include(missing.failure, "customers.csv.absent does not exist")
    const path = yield* Path.Path
    for (const wrong of [path.dirname(out), `${path.dirname(out)}/absent/results.csv`, file]) {
      const { failure, remarks } = yield* batch(yield* newKey, file, "--out", wrong)
      assert.match(failure ?? "", /^(?:The results cannot be written to|--out names the file to upload)/u)
      assert.strictEqual(remarks, "", "nothing was uploaded")
    }
  })

  it.effect("prints one message with the reason while it retries because the service cannot be reached", function* () {
    const { newKey, baseUrl } = yield* RunningService.RunningService
    let refused = 0
    /** Closes the first two connections, and forwards all further ones to the service. */
    const refuse = (client: Socket) => {
      if (refused < 2) {
        refused += 1
        return client.resetAndDestroy()
      }
      const service = connect(Number(new URL(baseUrl).port), "127.0.0.1")
      client.on("data", (bytes) => service.write(bytes))
      service.on("data", (bytes) => client.write(bytes))
      client.on("close", () => service.destroy())
      for (const socket of [client, service]) socket.on("error", () => [client.destroy(), service.destroy()])
    }
    const { port } = yield* TcpServer.make(refuse)
    const { file, out } = yield* listOf("a,ATU10550006")
    const url = `http://127.0.0.1:${port}`
    const { failure, remarks } = yield* commandWith({ API_KEY: yield* newKey }, "batch", "--url", url, file, "--out", out)
    assert.deepStrictEqual([failure, refused], [null, 2])
    const [first, second, third, ...rest] = remarks.trimEnd().split("\n")
    assert.deepStrictEqual(
      [first, second, third],
      [`Connecting to ${url}`, `Cannot reach ${url} (ECONNRESET); retrying`, `Uploading ${file}`]
    )
    assert.match(
      rest.join("\n"),
      /^The batch has the id .*\n(?:Waiting for the answers of the sources to 1 items\n)?Downloading the results$/u
    )
  })

  it.effect("gives up after ten seconds if the service has not responded", function* () {
    const { port } = yield* TcpServer.make(() => undefined)
    const { file, out } = yield* listOf("a,ATU10550006")
    const [silent, refusing] = [`http://127.0.0.1:${port}`, "http://127.0.0.1:1"]
    const run = (url: string) => commandWith({ API_KEY: "svc_live_unknown" }, "batch", "--url", url, file, "--out", out)
    const [duration, ended] = yield* Effect.timed(Effect.forEach([silent, refusing], run, { concurrency: 2 }))
    assert.deepStrictEqual(
      ended.map(({ failure }) => failure),
      [`Cannot reach ${silent} within 10 seconds: no response`, `Cannot reach ${refusing} within 10 seconds: ECONNREFUSED`]
    )
    assert.isBelow(Duration.toSeconds(duration), 30)
  })

  it.effect("downloads the results again if their transfer is interrupted", function* () {
    const { newKey, baseUrl } = yield* RunningService.RunningService
    const fs = yield* FileSystem.FileSystem
    let cuts = 0
    /** Forwards connections to the service. Resets the first connection that transfers results, before its last bytes. */
    const cut = (client: Socket) => {
      const service = connect(Number(new URL(baseUrl).port), "127.0.0.1")
      let isResults = false
      for (const socket of [client, service]) socket.on("error", () => [client.destroy(), service.destroy()])
      client.on("close", () => service.destroy())
      client.on("data", (bytes) => {
        isResults = bytes.includes("/results")
        service.write(bytes)
      })
      service.on("data", (bytes) => {
        if (!isResults || cuts > 0) return client.write(bytes)
        cuts += 1
        return client.write(bytes.subarray(0, -20), () => client.resetAndDestroy())
      })
    }
    const { port } = yield* TcpServer.make(cut)
    const { file, out } = yield* listOf("a,ATU10550005")
    const url = `http://127.0.0.1:${port}`
    const { failure } = yield* commandWith({ API_KEY: yield* newKey }, "batch", "--url", url, file, "--out", out)
    assert.deepStrictEqual([failure, cuts], [null, 1])
    assert.include(yield* fs.readFileString(out), '"final",true')
  })
})
