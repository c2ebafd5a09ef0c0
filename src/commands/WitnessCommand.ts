/** `vatproof notary witness`: cosigns, as a witness, the checkpoints of a log that another operator runs. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { DateTime, Effect, FileSystem, Option, Path, Redacted, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { HttpClient } from "effect/http"
import { cosign, witnessOf } from "#events/merkle/Cosignature.ts"
import { hashLength } from "#events/merkle/MerkleTree.ts"
import { formatVerifier, formatWitness, parseSigner } from "#events/merkle/NoteKeys.ts"
import { path as tilePath, type Tile } from "#events/merkle/Tiles.ts"
import * as Witness from "#events/notary/Witness.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { json, print } from "#app/commands/Operation.ts"
import * as VerifierKeys from "#app/commands/VerifierKeys.ts"

const timeout = "10 seconds"
/** Maximum size of a response. A checkpoint with cosignatures has a few thousand bytes, a tile 8 KiB. */
const maxBytes = 65_536
/** Maximum number of tiles that are read concurrently. */
const tilesAtOnce = 4

/**
 * Reads a checkpoint or a tile of the log over HTTP. Fails if the response has a status other than 200, is too large, or takes too
 * long.
 */
const read = Effect.fnUntraced(
  function* (url: string) {
    const http = yield* HttpClient.HttpClient
    const { status, stream } = yield* http.get(url)
    const refuse = (problem: string) => new Witness.LogUnreadable({ message: `${url} responded with ${problem}` })
    if (status !== 200) return yield* refuse(`status ${status}`)
    const chunks: Array<Uint8Array> = []
    let size = 0
    yield* Stream.runForEach(stream, (chunk) => {
      chunks.push(chunk)
      size += chunk.length
      return size > maxBytes ? Effect.fail(refuse(`more than ${maxBytes} bytes`)) : Effect.void
    })
    return new Uint8Array(Buffer.concat(chunks))
  },
  Effect.timeout(timeout),
  (effect, url) =>
    Effect.catchTag(effect, ["HttpClientError", "TimeoutError"], ({ message }) =>
      Effect.fail(new Witness.LogUnreadable({ message: `${url} cannot be read: ${message}` }))
    )
)

const readTile = (base: string) => (tile: Tile) =>
  Effect.map(read(`${base}/${tilePath(tile)}`), (hashes) => hashes.subarray(0, tile.width * hashLength))

const nameInKey = /^PRIVATE\+KEY\+(?<name>[^+]+)\+/u

/** Reads the secret key of the witness from a file that `vatproof notary key` wrote. */
const keyIn = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const text = (yield* fs.readFileString(file)).trim()
  const name = nameInKey.exec(text)?.groups?.["name"] ?? "witness"
  return witnessOf(pureCrypto, yield* Effect.fromResult(parseSigner(pureCrypto, name, Redacted.make(text))))
})

/**
 * Returns the checkpoint that this witness cosigned last for the log (`last`, null before the first cosignature). The function
 * `replace` stores the next checkpoint.
 */
const stateOf = Effect.fnUntraced(function* (directory: string, logKey: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const atomic = yield* AtomicFile.make
  const file = path.resolve(directory, `witness-${pureCrypto.sha256Hex(logKey).slice(0, 16)}.checkpoint`)
  return {
    last: yield* Effect.catchTag(fs.readFileString(file), "PlatformError", (error) =>
      error.reason._tag === "NotFound" ? Effect.succeed(null) : Effect.fail(error)
    ),
    replace: (note: string) => atomic.replace(file, note)
  }
})

export const witnessCommand = Command.make(
  "witness",
  {
    log: Argument.String("log").pipe(
      Argument.withDescription("URL of the log's checkpoint and tiles, for example https://vat.example.com/v1/audit")
    ),
    key: Flag.String("key").pipe(
      Flag.withDescription("The log's public key, several keys separated by spaces, or a file with them")
    ),
    signingKey: Flag.String("signing-key").pipe(
      Flag.withDescription(
        "A file with the secret key of the witness, made by `vatproof notary key --name <name of the witness>`"
      )
    ),
    state: Flag.String("state").pipe(
      Flag.optional,
      Flag.withDescription("The folder with the last checkpoint of each log. Default: DATA_DIR")
    ),
    out: Flag.String("out").pipe(
      Flag.optional,
      Flag.withDescription("Write the cosigned checkpoint into this file instead of printing it")
    ),
    json
  },
  Effect.fnUntraced(function* (flags) {
    const fs = yield* FileSystem.FileSystem
    const { dataDir } = yield* AppConfig
    const signer = yield* keyIn(flags.signingKey)
    const { verifiers } = yield* VerifierKeys.fromText(flags.key)
    const base = flags.log.replace(/\/+$/u, "")
    const { last, replace } = yield* stateOf(
      Option.getOrElse(flags.state, () => dataDir),
      formatVerifier(verifiers[0])
    )
    const note = new TextDecoder().decode(yield* read(`${base}/checkpoint`))
    const readTiles = (tiles: ReadonlyArray<Tile>) => Effect.forEach(tiles, readTile(base), { concurrency: tilesAtOnce })
    const { origin, size } = yield* Witness.consistent(pureCrypto, { verifiers, last, note, readTiles })
    yield* replace(note)
    const at = yield* DateTime.now
    const cosigned = cosign(note, signer, at)
    if (Option.isSome(flags.out)) yield* fs.writeFileString(flags.out.value, cosigned)
    const verifierKey = formatWitness(signer)
    const words = Option.match(flags.out, {
      onNone: () => cosigned.trimEnd(),
      onSome: (file) => `${origin} is cosigned with ${size} events: ${file}\nPublic key of the witness: ${verifierKey}`
    })
    yield* print(
      flags.json,
      {
        log: origin,
        events: size,
        first: last === null,
        at: DateTime.formatIso(at),
        witness_key: verifierKey,
        checkpoint: cosigned
      },
      words
    )
  }, Effect.provide(NodeHttpClient.layerUndici))
).pipe(
  Command.withDescription(
    "Cosign the newest checkpoint of another log with the time (c2sp.org/tlog-cosignature), if it continues the last checkpoint that was cosigned. " +
      "The first checkpoint is accepted without a comparison. Run the command regularly, one process at a time, on a machine that the log's operator does not control"
  ),
  Command.withShortDescription("Cosign the checkpoints of another log"),
  Command.withExamples([
    {
      command:
        "vatproof notary witness https://vat.example.com/v1/audit --key log.pub --signing-key witness.key --out cosigned.txt",
      description: "One run; start it by a timer"
    }
  ])
)
