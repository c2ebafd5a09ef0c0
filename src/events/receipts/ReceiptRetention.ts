import { ReceiptIssued } from "#domain/receipts/Receipt.ts"

/** SQL condition on the event `e` of an expired personal document: the document of a receipt is kept while the account of its API key is open. */
export const mayErase = `e.type <> '${ReceiptIssued.type}'
  OR coalesce((SELECT a.closed_at IS NOT NULL FROM (SELECT account_id FROM vatproof.api_keys WHERE key_id = (vatproof.json_of(e.data) ->> 'key_id')::uuid LIMIT 1) k
    CROSS JOIN LATERAL (SELECT closed_at FROM vatproof.accounts WHERE account_id = k.account_id LIMIT 1) a), false)`
