/** Confirms a VAT ID with company data: asks the BZSt and stores the receipt before the response is sent (rules 27-33). */
import { Context, DateTime, Effect, Layer, Option, Result } from "effect"
import { AnswerCache } from "#domain/vat/AnswerCache.ts"
import type { AdmittedConfirmation } from "#domain/receipts/ConfirmationRules.ts"
import { type ConfirmationRefusal, type Confirmed, ConfirmationSource } from "#domain/receipts/ConfirmationSource.ts"
import type { Credential } from "#domain/callers/Identity.ts"
import type { IdentifiedEvent } from "#domain/callers/Metering.ts"
import { referenceIn } from "#domain/vat/Verdict.ts"
import { onPaidPlan } from "#domain/callers/PaymentRequired.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { whileOutdated } from "#domain/callers/ReadAgain.ts"
import * as Receipts from "#domain/receipts/Receipt.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import * as RecordCharge from "#domain/validation/RecordCharge.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import type { VatId } from "#domain/vat/VatId.ts"

/** A request for a confirmation that the rules allow. `admitted` is the caller's standing after the call was counted. */
export interface ConfirmationRequest extends AdmittedConfirmation {
  readonly credential: Credential
  readonly reference: string | null
  readonly admitted: Standing
  readonly identity: IdentifiedEvent | undefined
}

/** The operator's names in receipts: the prefix of their ids, and the issuer. */
export interface ReceiptNames {
  readonly prefix: string
  readonly source: string
}

/** Maximum number of retries with a new receipt id, if the random id exists already. */
const maxNewIds = 5

const make = Effect.fnUntraced(function* (names: ReceiptNames) {
  const officialNames = yield* makeOfficialNames
  const recordCharge = yield* RecordCharge.make
  const crypto = yield* Crypto
  const source = yield* ConfirmationSource

  /**
   * Stores the receipt and charges the caller. Fails with StreamExists if the random receipt id exists, and with PreconditionFailed if
   * the names have changed since they were read.
   */
  const issue = Effect.fnUntraced(function* (
    request: ConfirmationRequest,
    confirmed: Confirmed,
    { names: official, repeats }: OfficialNames
  ) {
    const { answer, attempts } = confirmed
    const { admitted, caller, credential } = request
    const issuedAt = yield* DateTime.now
    const receipt = receiptOf(request, confirmed, {
      receipt_id: yield* newReceiptId(crypto, names.prefix, issuedAt),
      issued_at: issuedAt,
      source: names.source,
      ...official
    })
    const facts = { account_id: caller.accountId, key_id: caller.keyId, receipt, answer, attempts }
    const charge = {
      event: Receipts.ReceiptIssued.make(facts, {
        ...answer,
        ...receipt.result,
        ...referenceIn(receipt.reference),
        input: receipt.input
      }),
      units: 1,
      admitted,
      repeats,
      newStream: Receipts.receiptStream(receipt.receipt_id),
      identity: request.identity
    } as const
    const { standing } = yield* recordCharge(credential, caller, (current) =>
      Effect.map(Effect.fromResult(onPaidPlan(current)), (paid) => ({ ...charge, caller: paid }))
    )
    return { receipt, standing }
  })

  const confirm = Effect.fnUntraced(function* (request: ConfirmationRequest) {
    const { admitted, caller, credential, identity } = request
    const outcome = yield* Effect.result(source.confirm(request))
    if (Result.isFailure(outcome)) {
      if (outcome.failure._tag === "SourcesUnavailable") return yield* outcome.failure
      const event = refusalOf(request, outcome.failure)
      // If `accepted` is set, the task is not in the log yet. The refusal then has no task to close.
      const closing = identity?.accepted === undefined ? identity : undefined
      const charge = { event, units: 0, admitted, identity: closing } as const
      yield* recordCharge(credential, caller, (current) => Effect.succeed({ ...charge, caller: current })).pipe(
        Effect.catchTag(["PaidPlanRequired", "PreconditionFailed", "StreamExists"], Effect.die)
      )
      return yield* outcome.failure
    }
    const readNames = officialNames(request.vatId)
    const issued = yield* whileOutdated(
      yield* readNames,
      (names) =>
        issue(request, outcome.success, names).pipe(
          Effect.retry({ times: maxNewIds, while: ({ _tag }) => _tag === "StreamExists" }),
          Effect.catchTag("StreamExists", Effect.die)
        ),
      () => readNames
    )
    return { ...issued, answer: outcome.success.answer, requestId: outcome.success.requestId }
  })

  return { confirm }
})

const newReceiptId = ({ randomBytes }: Crypto["Service"], prefix: string, at: DateTime.Utc) => {
  const id = ReceiptId.compose(prefix, at, randomBytes(ReceiptId.entropyBytes))
  return id === null
    ? Effect.die("No receipt id could be generated: too few of the random bytes were usable")
    : Effect.succeed(id)
}

/**
 * Creates a function that returns name and address from the newest answer, or empty strings, and the answer that the receipt repeats.
 * Only VIES discloses names, for some member states; the BZSt never does. The cache of this process may still hold an erased or outdated
 * name, so the function reads the database.
 */
const makeOfficialNames = Effect.map(AnswerCache, (cache) =>
  Effect.fnUntraced(function* (vatId: VatId) {
    const newest = Option.getOrUndefined(yield* cache.refresh(vatId))
    const { company_address = null, company_name = null } = newest?.answer ?? {}
    const isNamed = company_name !== null || company_address !== null
    return {
      names: { official_name: company_name ?? "", official_address: company_address ?? "" },
      repeats: newest !== undefined && isNamed ? { vatId, asOf: newest.asOf } : undefined
    }
  })
)

type OfficialNames = Effect.Success<ReturnType<Effect.Success<typeof makeOfficialNames>>>

interface Issue {
  readonly receipt_id: string
  readonly issued_at: DateTime.Utc
  readonly source: string
  readonly official_name: string
  readonly official_address: string
}

const receiptOf = (request: ConfirmationRequest, { answer, letters, requestId }: Confirmed, issue: Issue): Receipts.Receipt => {
  const { company, reference, requester, vatId } = request
  const { issued_at, official_address, official_name, receipt_id, source } = issue
  return {
    receipt_id,
    target_vat_id: vatId.value,
    requester_vat_id: requester.value,
    reference,
    input: Receipts.inputOf(company),
    result: {
      valid: answer.valid,
      name_match: Receipts.wordOf(letters.name, company.name),
      street_match: Receipts.wordOf(letters.street, company.street),
      zip_match: Receipts.wordOf(letters.zip, company.zip),
      city_match: Receipts.wordOf(letters.city, company.city),
      official_name,
      official_address
    },
    bzst_request_id: requestId,
    issued_at,
    source
  }
}

const refusalOf = (request: ConfirmationRequest, { attempts, code }: ConfirmationRefusal) => {
  const { caller, reference, requester, vatId } = request
  const facts = {
    account_id: caller.accountId,
    key_id: caller.keyId,
    target_vat_id: vatId.value,
    requester_vat_id: requester.value,
    code,
    attempts
  }
  return Receipts.ConfirmationRefused.make(facts, referenceIn(reference))
}

export class ConfirmVatId extends Context.Service<ConfirmVatId, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/validation/ConfirmVatId"
) {
  static readonly layer = (names: ReceiptNames) => Layer.effect(ConfirmVatId, make(names))
}
