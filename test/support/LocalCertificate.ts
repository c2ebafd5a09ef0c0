/** A TLS server on 127.0.0.1 with a certificate of its own for `localhost`, which OpenSSL makes. */
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createServer, getCACertificates, setDefaultCACertificates } from "node:tls"

/** Starts the server, with a certificate that ends in `days`. Returns its URL. This process trusts the certificate if `trusted`. */
export const serve = Effect.fnUntraced(function* ({ days, trusted }: { readonly days: number; readonly trusted: boolean }) {
  const folder = mkdtempSync(join(tmpdir(), "vatproof-tls-"))
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")]
  const form = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
  const args = [
    "req",
    "-x509",
    ...form,
    "-days",
    String(days),
    "-addext",
    "subjectAltName=DNS:localhost",
    "-keyout",
    key,
    "-out",
    cert
  ]
  spawnSync("openssl", args)
  const pair = { key: readFileSync(key), cert: readFileSync(cert, "utf8") }
  rmSync(folder, { recursive: true })
  const usual = getCACertificates("default")
  if (trusted) setDefaultCACertificates([...usual, pair.cert])
  const server = createServer(pair, (socket) => {
    socket.on("error", () => socket.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        setDefaultCACertificates(usual)
        server.close()
      })
  )
  const address = server.address()
  return `https://localhost:${typeof address === "object" && address !== null ? address.port : 0}`
})
