/** Whose request this is, for limits: the socket's address, or what trusted proxies say it was (rule 39). */
import { Context, Option, Result } from "effect"
import { NetAddress } from "effect/net"
import type { HttpServerRequest } from "effect/http"

/** How many proxies in front of the service may be believed; 0 means none. */
export class TrustedProxies extends Context.Service<TrustedProxies, { readonly count: number }>()(
  "vatproof/http/pipeline/TrustedProxies"
) {}

/**
 * The client's network: an IPv4 address, or the /64 of an IPv6 address, because a client of IPv6 owns all of that. Each trusted proxy
 * appends the address it saw to X-Forwarded-For, so the client's is the `count`-th from the right; what lies further left is hearsay.
 * What is no address there (`203.0.113.077`, `unknown`) names no client: then the request counts for the proxy that sent it.
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

/** Some proxies write the client's port behind its address, or brackets around it, or the zone that it is of. */
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
