import { assert, it } from "@effect/vitest"
import { Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { clientNetwork } from "#http/pipeline/ClientAddress.ts"

const proxy = "10.0.0.1"

const networkOf = (forwarded: string, trustedProxies = 1) => {
  const request = HttpServerRequest.fromWeb(new Request("http://x/", { headers: { "x-forwarded-for": forwarded } }))
  return clientNetwork(request.modify({ remoteAddress: Option.some(proxy) }), trustedProxies)
}

it.each([
  "2001:db8:1:2::8",
  "2001:DB8:1:2:9::",
  "[2001:db8:1:2::a]",
  "[2001:db8:1:2::b]:443",
  "2001:db8:1:2::c%eth0",
  "[2001:db8:1:2::d%3]:80"
])("identifies an IPv6 client by its /64 network: %s", (written) => assert.strictEqual(networkOf(written), "2001:db8:1:2::/64"))

it.each(["192.0.2.7", "192.0.2.7:443", "::ffff:192.0.2.7", "[::ffff:192.0.2.7]:443"])(
  "identifies an IPv4 client by its address: %s",
  (written) => assert.strictEqual(networkOf(`203.0.113.9, ${written}`), "192.0.2.7")
)

it.each([
  "192.0.2.077",
  "0300.0.2.7",
  "0xc0.0.2.7",
  "3221225991",
  "192.0.2.7:0443",
  "[192.0.2.7",
  "192.0.2",
  "unknown",
  "_hidden",
  ""
])('identifies a client by the proxy\'s address if the proxy reports a malformed client address: "%s"', (written) =>
  assert.strictEqual(networkOf(written), proxy)
)

it("identifies a client by the address that the outermost of 1 to 3 trusted proxies reports", () => {
  const chain = "192.0.2.1, 198.51.100.2, 203.0.113.3"
  assert.deepStrictEqual(
    [0, 1, 2, 3].map((trusted) => networkOf(chain, trusted)),
    [proxy, "203.0.113.3", "198.51.100.2", "192.0.2.1"]
  )
})
