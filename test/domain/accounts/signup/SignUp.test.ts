import { assert, it } from "@effect/vitest"
import { isBrowser } from "#domain/accounts/signup/SignUp.ts"

it("a User-Agent that contains Mozilla/ belongs to a browser", () => {
  for (const agent of ["Mozilla/5.0 (X11)", "Opera/9.80 Mozilla/4.0"]) assert.isTrue(isBrowser(agent), agent)
  for (const agent of [undefined, "", "curl/8.5.0", "mozilla/5.0", "Mozilla", "Mozillian/1.0"])
    assert.isFalse(isBrowser(agent), agent)
})
