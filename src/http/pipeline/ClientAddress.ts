/** Finds the client address to which limits apply: the address of the socket, or the one that trusted proxies report (rule 39). */
import { Context, Option, Result } from "effect"
import { NetAddress } from "effect/net"
import type { HttpServerRequest } from "effect/http"

/** Number of trusted proxies in front of the service; 0 means none. */
export class TrustedProxies extends Context.Service<TrustedProxies, { readonly count: number }>()(
  "vatproof/http/pipeline/TrustedProxies"
) {}

/**
 * Returns the client's network: its IPv4 address, or the /64 of its IPv6 address, because an IPv6 client owns a whole /64. Each trusted
 * proxy appends its client's address to X-Forwarded-For. With n trusted proxies the client's address is therefore the n-th entry from the
 * right; entries further left may be forged. If that entry is not an address (`203.0.113.077`, `unknown`), the socket's address is used.
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
