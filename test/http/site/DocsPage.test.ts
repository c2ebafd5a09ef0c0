import { beforeEach } from "@effect/vitest"
import { Schema } from "effect"
import * as Browser from "#test/support/Browser.ts"
import { operations } from "#test/support/Description.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const operationIds = operations.map(({ operation }) => operation.operationId)

const call = '.opblock[id$="-validateVatId"]'

layer(RunningService.layerShared(), { excludeTestServices: true })("the page /docs in a browser", (it) => {
  beforeEach((context) => context.skip(!Browser.hasChromium, "skipped: chromium is not installed"))

  it.effect(
    "has each operation, sends the form of one, and violates no policy",
    function* () {
      const { baseUrl } = yield* RunningService.RunningService
      const page = yield* Browser.open(`${baseUrl}/docs`)
      for (const button of [".opblock-summary-control", ".try-out__btn", ".execute"]) yield* page.click(`${call} ${button}`)
      const shown = yield* page.textOf(`${call} .live-responses-table .response`)
      assert.match(shown, /^200\b/u)
      assert.match(shown, /"valid": true,\s+"vat_id": "DE123456789"/u)
      const ids = yield* page.evaluate(`[...document.querySelectorAll(".opblock")].map(({ id }) => id.split("-").at(-1))`)
      assert.sameMembers(Schema.decodeUnknownSync(Schema.Array(Schema.String))(ids).slice(), operationIds)
      const requests = page.events.flatMap(
        (event) => /^Network\.requestWillBeSent .*?"request":\{.*?"url":"([^"?]+)/u.exec(event)?.[1] ?? []
      )
      // The browser may ask for the icon again.
      const icon = `${baseUrl}/favicon.svg`
      const loaded = requests.filter(
        (url, index) => !url.startsWith("data:image/") && (url !== icon || requests.indexOf(url) === index)
      )
      assert.sameMembers(
        loaded,
        ["/docs", "/openapi.json", "/favicon.svg", "/v1/validate/DE123456789"].map((path) => baseUrl + path)
      )
      const problems = page.events.filter((event) =>
        /^Log\.entryAdded|^Runtime\.exceptionThrown|ContentSecurityPolicy/u.test(event)
      )
      assert.deepStrictEqual(problems, [])
    },
    60_000
  )
})
