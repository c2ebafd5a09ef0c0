import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import { contentCoding, language, mediaType } from "#http/wire/Negotiation.ts"

const types = ["application/json", "text/html", "application/pdf"] as const
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

describe("the negotiated media type", () => {
  it.each([
    [undefined, "application/json"],
    ["", "application/json"],
    ["*/*", "application/json"],
    ["application/json", "application/json"],
    ["application/*", "application/json"],
    ["text/*", "text/html"],
    ["text/html", "text/html"],
    ["TEXT/HTML;charset=utf-8", "text/html"],
    ["application/pdf", "application/pdf"],
    [browser, "text/html"],
    ["application/json, text/plain, */*", "application/json"],
    ["text/html, */*; q=0.01", "text/html"],
    // Equal quality: the service prefers JSON.
    ["text/html, application/json", "application/json"],
    ["application/pdf;q=0.5, text/html;q=0.4", "application/pdf"],
    ["application/pdf;q=0.4, text/html;q=0.5", "text/html"],
    ["application/pdf; q=0.9, */*; q=1", "application/json"],
    // A more precise range overrides a wildcard.
    ["application/json;q=0, */*", "text/html"],
    ["application/json;q=0.2, application/*;q=0.9", "application/pdf"],
    ["text/*;q=0.9, text/html;q=0, */*;q=0.1", "application/json"],
    ["text/html;level=1;q=0.3, application/json;q=0.2", "text/html"],
    // Malformed preferences are ignored.
    ["text/html;q=2, application/pdf;q=0.1", "application/pdf"],
    ["text/html;q=abc, application/pdf;q=0.001", "application/pdf"],
    [",,;q=1,text/html", "text/html"]
  ] as const)("for the header Accept: %j is %s", (header, expected) => {
    assert.deepStrictEqual(mediaType(header, types), Option.some(expected))
  })

  it.each(["image/png", "text/html;q=0", "*/*;q=0", "html", "*", "application/json;q=0.0"])(
    "for the header Accept: %j has no match",
    (header) => {
      assert.deepStrictEqual(mediaType(header, types), Option.none())
    }
  )
})

describe("the negotiated language", () => {
  it.each([
    [undefined, "en"],
    ["", "en"],
    ["*", "en"],
    ["de", "de"],
    ["DE", "de"],
    ["de-AT", "de"],
    ["de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "de"],
    ["en-US,en;q=0.9,de;q=0.8", "en"],
    ["fr, de;q=0.3", "de"],
    ["fr, de;q=0.3, *;q=0.2", "de"],
    ["de;q=0.2, *;q=0.5", "en"],
    ["de, *", "de"],
    ["en;q=0, *", "de"],
    ["de-AT, de;q=0.1, en;q=0.5", "de"],
    ["en, de", "en"]
  ] as const)("for the header Accept-Language: %j is %s", (header, expected) => {
    assert.strictEqual(language(header, ["en", "de"]), expected)
  })

  it.each(["fr", "nederlands", "en;q=0", "en;q=0, en-GB"])(
    "for the header Accept-Language: %j is the default, because no language matches",
    (header) => {
      assert.strictEqual(language(header, ["en", "de"]), "en")
    }
  )
})

describe("the negotiated content coding", () => {
  it.each([
    ["gzip, deflate, br, zstd", "br"],
    ["gzip", "gzip"],
    ["br;q=0.2, gzip;q=0.8", "gzip"],
    ["*", "br"],
    ["br;q=0, *", "gzip"]
  ] as const)("for the header Accept-Encoding: %j is %s", (header, expected) => {
    assert.deepStrictEqual(contentCoding(header, ["br", "gzip"]), Option.some(expected))
  })

  it.each([undefined, "", "identity", "zstd", "br;q=0, gzip;q=0", "brotli"])(
    "for the header Accept-Encoding: %j has no match",
    (header) => {
      assert.deepStrictEqual(contentCoding(header, ["br", "gzip"]), Option.none())
    }
  )
})
