// Validates a VAT ID: VATPROOF_KEY=svc_live_… node validate.mjs DE123456789
const base = process.env.VATPROOF_URL ?? "http://127.0.0.1:8080"

// An outage of the sources is not retried: only three of them per VAT ID and hour are free. POST /v1/validations answers later.
const validate = async (vatId, tries = 3) => {
  const url = `${base}/v1/validate/${encodeURIComponent(vatId)}`
  const headers = { "X-Api-Key": process.env.VATPROOF_KEY }
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(40_000) })
  const body = await response.json()
  if (response.ok) return body // body.valid is a source's word
  const { code, message, request_id } = body.error
  const seconds = Number(response.headers.get("Retry-After")) // only 429 and 503 have it
  if (code === "SOURCE_UNAVAILABLE" || tries <= 1 || seconds === 0 || seconds > 60)
    throw new Error(`${code}: ${message} (request ${request_id})`)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  return validate(vatId, tries - 1)
}

try {
  if (!process.env.VATPROOF_KEY || process.argv.length !== 3)
    throw new Error("Usage: VATPROOF_KEY=svc_live_… node validate.mjs DE123456789")
  const { valid, vat_id } = await validate(process.argv[2])
  console.log(`${vat_id} is ${valid ? "valid" : "not valid"}`)
} catch (error) {
  console.error(error.cause ? `The service cannot be reached: ${error.cause.code ?? error.message}` : error.message)
  process.exitCode = 1
}
