import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { receiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { receiptLanguages } from "#domain/receipts/document/ReceiptText.ts"
import { receiptPage } from "#http/receipts/ReceiptPage.ts"
import { type Differences, receiptRecord } from "#test/support/ReceiptRecords.ts"

const hashed = (algorithm: "hex" | "base64") => (text: string) => createHash("sha256").update(text).digest(algorithm)

const pageOf = (differences: Differences = {}, language: "en" | "de" = "en") =>
  receiptPage(receiptDocument(receiptRecord(differences), language), hashed("hex"))

/** Decodes HTML entities, as a browser does. */
const unescaped = (html: string) =>
  html.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&")

const nasty = `</bdi></td><script>alert(1)</script><img src=x onerror="alert(2)"> & ' " \u0000`

describe("the page of a receipt", () => {
  it("shows the supplied company data as escaped text, whatever its content", () => {
    const hostile = JSON.stringify({ x: nasty })
    const { html } = pageOf({
      input: { company_name: nasty, company_street: nasty, company_zip: nasty, company_city: nasty },
      result: { official_name: nasty, official_address: nasty },
      request: hostile,
      response: hostile,
      requestId: nasty,
      record: { bzstStatus: nasty, eventId: nasty }
    })
    const tags = [...html.matchAll(/<\/?([a-z][a-z0-9]*)/giu)].map(([, name]) => name)
    assert.deepStrictEqual(
      [...new Set(tags)].toSorted(),
      "a bdi body code dd div dl dt h1 h2 h3 head header html li main meta ol p pre section span style table tbody td th thead title tr ul".split(
        " "
      )
    )
    assert.notMatch(html.replace(/<style>.*?<\/style>/su, ""), /<[^>]*\son\w+=/iu)
    assert.include(unescaped(html), nasty.replace("\u0000", "[U+0000]"))
  })

  it("loads no external resources and has no script", () => {
    const { html, policy } = pageOf()
    assert.notMatch(html, /https?:|\/\/\w|@import|url\(|<script|<link|<iframe/iu)
    const sources = [...html.matchAll(/(?:src|href)="([^"]{0,16})/gu)].map(([, start]) => start)
    assert.deepStrictEqual(new Set(sources), new Set(["data:application"]))
    assert.match(
      policy,
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/u
    )
  })

  it.each([
    ["en", "SANDBOX: NO EVIDENCE", "No tax authority was asked", "This is the answer of the German"],
    ["de", "SANDBOX: KEIN NACHWEIS", "Es wurde keine Behörde gefragt", "So hat das Bundeszentralamt"]
  ] as const)("marks a simulated receipt by a banner, a watermark and its title (%s)", (language, mark, text, live) => {
    const { html } = pageOf({ isSandbox: true }, language)
    assert.match(
      html,
      new RegExp(`<title>${mark}.*<p class="mark">${mark}.*${text}.*<div class="watermark" aria-hidden="true">${mark}<`, "su")
    )
    assert.notInclude(html, live)
    const unmarked = pageOf({}, language).html.replace(/<style>.*?<\/style>/su, "")
    assert.include(unmarked, live)
    assert.notMatch(unmarked, /sandbox|class="(?:mark|watermark)"/iu)
  })

  it("has a green verdict only if all supplied company data matches", () => {
    const boxOf = (differences: Differences) =>
      /<section class="verdict (\w+)">\n<p class="headline">(.*)<\/p>\n<p class="compared">(.*)<\/p>/u
        .exec(pageOf(differences).html)
        ?.slice(1)
    const all = { street_match: "match", zip_match: "match" } as const
    assert.deepStrictEqual(boxOf({ result: all }), [
      "good",
      "DE100999120 was valid",
      "Company data: 3 of 3 supplied fields match the register."
    ])
    assert.deepStrictEqual(boxOf({ result: { ...all, zip_match: "mismatch" } }), [
      "mixed",
      "DE100999120 was valid",
      "Company data: 1 of 3 supplied fields does not match the register."
    ])
    assert.strictEqual(boxOf({ result: { ...all, valid: false } })?.[0], "bad")
    assert.include(pageOf().html, ".mixed .headline{color:var(--ink)}")
  })

  it.each(receiptLanguages)(
    "does not break a statute's number across lines, nor a sentence and its list across printed pages (%s)",
    (language) => {
      const { html } = pageOf({}, language)
      assert.include(html, "§\u00A018e")
      assert.include(html, "section>p:not(:last-child){break-after:avoid}")
    }
  )

  it("allows only its own style sheet, by its hash", () => {
    const { html, policy } = pageOf({}, "de")
    const [, style = ""] = /<style>(.*?)<\/style>/su.exec(html) ?? []
    assert.include(policy, `'sha256-${hashed("base64")(style)}'`)
    assert.notMatch(html, /\sstyle=/u)
    assert.include(style, `"Seite " counter(page) " von " counter(pages)`)
  })

  it.each(receiptLanguages)("declares its language (%s)", (language) => {
    assert.match(pageOf({}, language).html, new RegExp(`^<!DOCTYPE html>\n<html lang="${language}">`, "u"))
  })

  it("contains the exact request and response of the BZSt as files", () => {
    const request = `{"firmenname":"Müller & Söhne \\"<ΑΒΓ>\\" 100% 'x' #?"}`
    const { html } = pageOf({ request })
    const files = [...html.matchAll(/download="([^"]+)" href="data:application\/json;charset=utf-8,([^"]+)"/gu)].map(
      ([, name, data = ""]) => [name, decodeURIComponent(unescaped(data))]
    )
    assert.strictEqual(files.length, 3)
    assert.deepStrictEqual(files[1], ["VP-QC-20261121-A7K2M9P4R3-question.json", request])
    assert.deepStrictEqual(files[2]?.[1], receiptRecord().evidence.response)
  })
})
