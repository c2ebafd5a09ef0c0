/**
 * Content negotiation: selects the offer that the client prefers (RFC 9110, 12.4 and 12.5; RFC 4647, 3.4; read 2026-11). An offer is a
 * media type, content coding or language that the service can send.
 */
import { Array as Arr, Option, Order } from "effect"

/** One entry of an Accept header: its range in lower case, such as `text/*`, and its quality from 0 to 1. */
interface Preference {
  readonly range: string
  readonly quality: number
}

/**
 * The rank of an offer for the client: its quality from 0 (rejected) to 1, and how precisely the header names the offer (0: only by a
 * wildcard).
 */
interface Rank {
  readonly quality: number
  readonly precision: number
}

const weight = /^\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*$/iu

/**
 * Parses the entries of a header. Ignores malformed entries, and parameters other than `q`. If the header is missing, the client
 * accepts everything, so the function returns only the range `all`.
 */
const preferences = (header: string | undefined, all: string): ReadonlyArray<Preference> => {
  if (header === undefined || header.trim() === "") return [{ range: all, quality: 1 }]
  return header.split(",").flatMap((entry) => {
    const [range = "", ...parameters] = entry.split(";")
    const written = parameters.find((parameter) => /^\s*q\s*=/iu.test(parameter))
    const quality = written === undefined ? "1" : weight.exec(written)?.[1]
    const name = range.trim().toLowerCase()
    return name === "" || quality === undefined ? [] : [{ range: name, quality: Number(quality) }]
  })
}

const byRank = Order.Struct({ quality: Order.flip(Order.Number), precision: Order.flip(Order.Number) })

/**
 * Returns the offer with the highest quality; none if the client accepts no offer. Of offers with equal quality it returns the one that
 * the header names most precisely, then the first one.
 */
const best = <Offer extends string>(offers: ReadonlyArray<Offer>, rankOf: (offer: Offer) => Rank): Option.Option<Offer> => {
  const ranked = offers.map((offer) => ({ offer, ...rankOf(offer) })).filter(({ quality }) => quality > 0)
  return Option.map(Arr.head(Arr.sort(ranked, byRank)), ({ offer }) => offer)
}

const notNamed: Rank = { quality: 0, precision: 0 }

/**
 * Returns the media type that the client prefers; none if the client accepts no offer. If several ranges match a media type, the most
 * precise range determines its quality.
 */
export const mediaType = <Offer extends string>(
  header: string | undefined,
  offers: ReadonlyArray<Offer>
): Option.Option<Offer> => {
  const accepted = preferences(header, "*/*")
  return best(offers, (offer) => {
    const ranges = ["*/*", `${offer.split("/", 1).join("")}/*`, offer]
    const ranks = ranges.flatMap((range, precision) =>
      accepted.filter((one) => one.range === range).map(({ quality }): Rank => ({ quality, precision }))
    )
    return ranks.at(-1) ?? notNamed
  })
}

/** Returns the content coding that the client prefers; none if the client accepts no offer or sends no header. */
export const contentCoding = <Offer extends string>(
  header: string | undefined,
  offers: ReadonlyArray<Offer>
): Option.Option<Offer> => {
  if (header === undefined) return Option.none()
  const accepted = preferences(header, "identity")
  return best(offers, (offer) => {
    const entry = accepted.find(({ range }) => range === offer) ?? accepted.find(({ range }) => range === "*")
    return { quality: entry?.quality ?? 0, precision: 0 }
  })
}

/**
 * Returns the language that the client prefers. If the client accepts no offered language, returns the first offer. `de-AT` in the
 * header accepts `de` too, unless the header rejects `de` (`de;q=0`).
 */
export const language = <Offer extends string>(
  header: string | undefined,
  offers: readonly [Offer, ...ReadonlyArray<Offer>]
): Offer => {
  const accepted = preferences(header, "*")
  const preferred = best(offers, (offer) => {
    const [itself] = accepted.filter(({ range }) => range === offer)
    if (itself?.quality === 0) return notNamed
    const named = accepted.filter(({ range }) => range === offer || range.startsWith(`${offer}-`))
    if (named.length > 0) return { quality: Math.max(...named.map(({ quality }) => quality)), precision: 1 }
    return { quality: accepted.find(({ range }) => range === "*")?.quality ?? 0, precision: 0 }
  })
  return Option.getOrElse(preferred, () => offers[0])
}

/** Returns true if the client prefers HTML to JSON, as browsers do. */
export const prefersPage = (accept: string | undefined): boolean =>
  Option.contains(mediaType(accept, ["application/json", "text/html"]), "text/html")
