/** The error page of a link that cannot open its receipt. */
import * as OutcomePage from "#http/site/OutcomePage.ts"
import type { Sha256 } from "#http/site/Page.ts"
import type { ErrorCode, Problem } from "#http/pipeline/Errors.ts"
import { statusOf } from "#http/pipeline/Errors.ts"
import type { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"

type Language = (typeof receiptLanguages)[number]

const texts = {
  en: {
    unusable: {
      title: "This link is not valid",
      text: "It has expired, was revoked, or a part of it is missing. Ask the sender of the link for a new one."
    },
    erased: {
      title: "This receipt was erased",
      text: "Its personal data was erased. Its owner can still get the proof that it was issued."
    },
    unavailable: { title: "Please try again", text: "The receipt cannot be shown at the moment. Try again in a minute." }
  },
  de: {
    unusable: {
      title: "Dieser Link gilt nicht",
      text: "Er ist abgelaufen, wurde widerrufen, oder ein Teil von ihm fehlt. Bitten Sie den Absender um einen neuen Link."
    },
    erased: {
      title: "Dieser Beleg wurde gelöscht",
      text: "Seine personenbezogenen Daten wurden gelöscht. Der Inhaber erhält weiterhin den Nachweis, dass er ausgestellt wurde."
    },
    unavailable: {
      title: "Bitte versuchen Sie es noch einmal",
      text: "Der Beleg kann gerade nicht gezeigt werden. Versuchen Sie es in einer Minute wieder."
    }
  }
} as const satisfies Record<Language, unknown>

const outcomeOf = (code: ErrorCode) => {
  if (code === "NOT_FOUND") return "unusable"
  return code === "RECEIPT_ERASED" ? "erased" : "unavailable"
}

interface Refused {
  readonly language: Language
  readonly problem: Problem
  /** The id of the request, for support. */
  readonly requestId: string
}

export const receiptLinkPage = ({ language, problem, requestId }: Refused, sha256Hex: Sha256) => {
  const { code, retryAfterSeconds } = problem
  const { text, title } = texts[language][outcomeOf(code)]
  return OutcomePage.respond({ status: statusOf(code), language, title, text, requestId, retryAfterSeconds }, sha256Hex)
}
