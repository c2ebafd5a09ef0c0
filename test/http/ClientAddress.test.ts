import { assert, it } from "@effect/vitest"
import { HttpServerRequest } from "effect/http"
import { clientNetwork } from "#http/ClientAddress.ts"

const networkOf = (forwarded: string) =>
  clientNetwork(HttpServerRequest.fromWeb(new Request("http://x/", { headers: { "x-forwarded-for": forwarded } })), 1)

it.each([
  "2001:db8:1:2::8",
  "2001:DB8:1:2:9::",
  "[2001:db8:1:2::a]",
  "[2001:db8:1:2::b]:443",
  "2001:db8:1:2::c%eth0",
  "[2001:db8:1:2::d%3]:80"
])("a client of IPv6 is its /64, however a proxy writes it: %s", (written) =>
  assert.strictEqual(networkOf(written), "2001:db8:1:2::/64")
)

it.each(["192.0.2.7", "192.0.2.7:443", "::ffff:192.0.2.7", "[::ffff:192.0.2.7]:443"])(
  "a client of IPv4 is its address, however a proxy writes it: %s",
  (written) => assert.strictEqual(networkOf(`203.0.113.9, ${written}`), "192.0.2.7")
)
