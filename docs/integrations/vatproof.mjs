// Validates a VAT ID at Vatproof. Copy this file into your program. VATPROOF_URL and VATPROOF_KEY come from the environment.

/** Returns "valid" or "invalid" if a source said so, and "unknown" for anything else: an outage, a limit, a wrong key. */
export const validate = async (vatId, timeoutMs = 40_000) => {
  try {
    const response = await fetch(`${process.env.VATPROOF_URL}/v1/validate/${encodeURIComponent(vatId)}`, {
      headers: { "X-Api-Key": process.env.VATPROOF_KEY },
      signal: AbortSignal.timeout(timeoutMs)
    })
    const body = await response.json()
    if (typeof body.valid === "boolean") return body.valid ? "valid" : "invalid"
    // Such a text is the VAT ID of no member state: a typing error of the customer.
    return body.error?.code === "INVALID_VAT_ID" ? "invalid" : "unknown"
  } catch {
    return "unknown"
  }
}
