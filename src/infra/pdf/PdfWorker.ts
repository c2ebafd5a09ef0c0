/**
 * The worker thread: receives a document and returns the bytes of its PDF. A failure ends the thread, which PdfRenderer.ts
 * handles.
 */
import { parentPort } from "node:worker_threads"
import type { ReceiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { receiptPages } from "#infra/pdf/ReceiptPages.ts"

export const pdfWorker = parentPort?.on("message", (document: ReceiptDocument) => {
  const pdf = receiptPages(document)
  const chunks: Array<Buffer> = []
  pdf.on("data", (chunk: Buffer) => chunks.push(chunk))
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, which has no origin
  pdf.on("end", () => parentPort?.postMessage(new Uint8Array(Buffer.concat(chunks))))
  pdf.end()
})
