/** The client's address for rate limits: the socket's, or the one that trusted proxies report (rule 39). */
import { Context, Option, Result } from "effect"
import { NetAddress } from "effect/net"
import type { HttpServerRequest } from "effect/http"

/** Number of trusted proxies in front of the service; 0 means none. */
export class TrustedProxies extends Context.Service<TrustedProxies, { readonly count: number }>()(
  "vatproof/http/pipeline/TrustedProxies"
) {}

/**
 * Returns the client's network: an IPv4 address, or the /64 of an IPv6 address, because an IPv6 client owns all of it. Each
 * trusted proxy appends the address it saw to X-Forwarded-For, so the client's is the `count`-th from the right; entries further
 * left are untrusted. If the entry is not an address (`203.0.113.077`, `unknown`), the request counts for the proxy that sent it.
 */
export const clientNetwork = (request: HttpServerRequest.HttpServerRequest, trustedProxies: number): string => {
  const socket = networkOf(Option.getOrElse(request.remoteAddress, () => ""))
  if (trustedProxies === 0) return Option.getOrElse(socket, () => "")
  const forwarded = (request.headers["x-forwarded-for"] ?? "").split(",").at(-trustedProxies) ?? ""
  return Option.getOrElse(
    Option.orElse(networkOf(forwarded.trim()), () => socket),
    () => ""
  )
}

/** Some proxies add the client's port, brackets or the zone to its address. */
const addressOf = (text: string) => {
  const plain = text.replace(/^\[([^\]]*)\]$/u, "$1").replace(/%[^\]]*/u, "")
  return Result.orElse(NetAddress.ipFromString(plain), () =>
    Result.map(NetAddress.inetAddressFromString(plain), (socket): NetAddress.IpAddress => socket.address)
  )
}

const networkOf = (text: string): Option.Option<string> =>
  Option.map(Result.getSuccess(addressOf(text)), (ip) => {
    const address = NetAddress.toCanonical(ip)
    if (NetAddress.isIpv4Address(address)) return NetAddress.formatIp(address)
    return `${NetAddress.ipv6ToSegments(address)
      .slice(0, 4)
      .map((segment) => segment.toString(16))
      .join(":")}::/64`
  })
