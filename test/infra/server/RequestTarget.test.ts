import { assert, describe, it } from "@effect/vitest"
import { requestTarget } from "#infra/server/RequestTarget.ts"

describe("the path and query of a request", () => {
  it("stay unchanged if the router can read them", () => {
    for (const target of ["/health", "/v1/validate/DE%20811", "/v1/x?name=M%C3%BCller+GmbH&a=b;c", "/%EF%BF%BD", "*", ""]) {
      assert.strictEqual(requestTarget(target), target)
    }
  })

  it("have invalid UTF-8 replaced", () => {
    assert.strictEqual(requestTarget("/v1/validate/%FF"), "/v1/validate/%EF%BF%BD")
    assert.strictEqual(requestTarget("/v1/validate/%c3%a4%FCx"), "/v1/validate/%C3%A4%EF%BF%BDx")
    assert.strictEqual(
      requestTarget("/x?name=100%&b=%zz&c=%ED%A0%80"),
      "/x?name=100%EF%BF%BD&b=%EF%BF%BDzz&c=%EF%BF%BD%EF%BF%BD%EF%BF%BD"
    )
  })

  it("have the characters ; and # escaped, except for ; in the query", () => {
    assert.strictEqual(requestTarget("/v1/usage;a=b"), "/v1/usage%3Ba=b")
    assert.strictEqual(requestTarget("/v1/x;y?a=b;c#d?e"), "/v1/x%3By?a=b;c%23d?e")
    assert.strictEqual(requestTarget("/v1/x#y?a=b"), "/v1/x%23y?a=b")
  })
})
