/** Explains the error codes in the OpenAPI document. */
import { Record as Rec } from "effect"
import { bodyWith, codes, errors } from "#http/pipeline/Errors.ts"

/** Returns the error codes that occur in a text, with their meanings, as a Markdown list. */
export const meaningsOf = (text: string): string => {
  const words = new Set(text.split(/\W+/u))
  return codes
    .filter((code) => words.has(code))
    .map((code) => `- \`${code}\`: ${errors[code][1]}`)
    .join("\n")
}

/** All error codes with status and meaning as a Markdown table, for the introduction of the document. */
export const tableOfMeanings = [
  "| status | code | meaning |",
  "|---|---|---|",
  ...Rec.toEntries(errors).map(([code, [status, meaning]]) => `| ${status} | \`${code}\` | ${meaning} |`)
].join("\n")

/** The schema of every error body, which is the component `Error` of the document. */
export const ErrorBody = bodyWith(codes).annotate({ identifier: "Error", description: "The body of every error" })
