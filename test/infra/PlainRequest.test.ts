import { assert, describe, it } from "@effect/vitest"
import * as PlainRequest from "#infra/PlainRequest.ts"

const read = (text: string) => PlainRequest.read(Buffer.from(text, "latin1"))
const withHeader = (...lines: ReadonlyArray<string>) => `GET /a HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`

describe("a plain request", () => {
  it("is a GET with nothing but a head", () => {
    assert.deepStrictEqual(
      read("GET /v1/validate/ATU12345678 HTTP/1.1\r\nHost: a.example\r\nX-Api-Key:  k=1 \r\nAccept:*/*\r\n\r\n"),
      {
        method: "GET",
        url: "/v1/validate/ATU12345678",
        headers: { host: "a.example", "x-api-key": "k=1", accept: "*/*" }
      }
    )
  })

  it("may have no headers at all, and may say that its connection stays", () => {
    assert.deepStrictEqual(read("GET / HTTP/1.1\r\n\r\n"), { method: "GET", url: "/", headers: {} })
    assert.deepStrictEqual(read(withHeader("Connection: Keep-Alive"))?.headers, { connection: "Keep-Alive" })
  })

  const others: ReadonlyArray<readonly [what: string, text: string]> = [
    ["is nothing", ""],
    ["is not complete", "GET /a HTTP/1.1\r\nhost: x\r\n"],
    ["has another behind it", "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"],
    ["has something behind it", "GET /a HTTP/1.1\r\n\r\nx"],
    ["begins with an empty line", "\r\nGET /a HTTP/1.1\r\n\r\n"],
    ["is of another method", "HEAD /a HTTP/1.1\r\n\r\n"],
    ["is of another version", "GET /a HTTP/1.0\r\n\r\n"],
    ["has a method in lower case", "get /a HTTP/1.1\r\n\r\n"],
    ["has two spaces", "GET  /a HTTP/1.1\r\n\r\n"],
    ["has a space in its target", "GET /a b HTTP/1.1\r\n\r\n"],
    ["has a byte in its target that is not ASCII", "GET /\u00e4 HTTP/1.1\r\n\r\n"],
    ["has lines that end in a line feed", "GET /a HTTP/1.1\nhost: x\n\n"],
    ["has one line that ends in a line feed", "GET /a HTTP/1.1\r\nhost: x\n\r\n"],
    ["has a carriage return in a value", withHeader("a: b\rc: d")],
    ["has a NUL in a value", withHeader("a: b\0")],
    ["has a byte in a value that is not ASCII", withHeader("a: \u00fc")],
    ["has a tab in a value", withHeader("a:\tb")],
    ["has a folded value", withHeader("a: b", " c")],
    ["has a space before a colon", withHeader("content-length : 5")],
    ["has a name with another character", withHeader("content_length: 5")],
    ["has a name that is empty", withHeader(": 5")],
    ["has a line without a colon", withHeader("a")],
    ["has the same header twice", withHeader("X-Api-Key: a", "x-api-key: a")],
    ["has a name that objects have", withHeader("constructor: a")],
    ["has a body of a length", withHeader("Content-Length: 0")],
    ["has a body in chunks", withHeader("Transfer-Encoding: chunked")],
    ["wants its connection closed", withHeader("Connection: close")],
    ["names a header of its connection", withHeader("Connection: keep-alive, x-api-key")],
    ["wants another protocol", withHeader("Upgrade: h2c")],
    ["expects something first", withHeader("Expect: 100-continue")],
    ["is long", withHeader(`a: ${"x".repeat(4_096)}`)]
  ]

  for (const [what, text] of others) {
    it(`is none if it ${what}`, () => assert.isNull(read(text)))
  }
})
