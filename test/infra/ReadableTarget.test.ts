import { assert, describe, it } from "@effect/vitest"
import { readableTarget } from "#infra/ReadableTarget.ts"

describe("a request's target", () => {
  it("is left as it is where it can be read", () => {
    for (const target of ["/health", "/v1/validate/DE%20811", "/v1/x?name=M%C3%BCller+GmbH&a=b;c", "/%EF%BF%BD", "*", ""]) {
      assert.strictEqual(readableTarget(target), target)
    }
  })

  it("has no bytes that are no UTF-8", () => {
    assert.strictEqual(readableTarget("/v1/validate/%FF"), "/v1/validate/%EF%BF%BD")
    assert.strictEqual(readableTarget("/v1/validate/%c3%a4%FCx"), "/v1/validate/%C3%A4%EF%BF%BDx")
    assert.strictEqual(
      readableTarget("/x?name=100%&b=%zz&c=%ED%A0%80"),
      "/x?name=100%EF%BF%BD&b=%EF%BF%BDzz&c=%EF%BF%BD%EF%BF%BD%EF%BF%BD"
    )
  })

  it("has a query only behind a question mark, and no end before its end", () => {
    assert.strictEqual(readableTarget("/v1/usage;a=b"), "/v1/usage%3Ba=b")
    assert.strictEqual(readableTarget("/v1/x;y?a=b;c#d?e"), "/v1/x%3By?a=b;c%23d?e")
    assert.strictEqual(readableTarget("/v1/x#y?a=b"), "/v1/x%23y?a=b")
  })
})
