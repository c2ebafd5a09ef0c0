/**
 * Finds the IP address of the client, to which limits apply (rule 39). Without trusted proxies it is the address of the socket,
 * otherwise the address that the proxies report.
 */
import { Context, Option, Result } from "effect"
import { NetAddress } from "effect/net"
import type { HttpServerRequest } from "effect/http"

/** Number of trusted proxies in front of the service; 0 means none. */
export class TrustedProxies extends Context.Service<TrustedProxies, { readonly count: number }>()(
  "vatproof/http/pipeline/TrustedProxies"
) {}

/**
 * Returns the client's IPv4 address, or the /64 network of its IPv6 address, because an IPv6 client owns a whole /64. Each trusted
 * proxy appends the address of its own client to X-Forwarded-For. With n trusted proxies the client's address is the n-th entry from
 * the right. A client can forge the entries further left. If the n-th entry is not an address (`unknown`), the address of the socket is
 * used.
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

/** Parses an IP address, also with the brackets, port or zone that some proxies add. */
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
