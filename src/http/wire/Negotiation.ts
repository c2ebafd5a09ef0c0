/** Content negotiation: selects the offer that the client prefers (RFC 9110, 12.4 and 12.5; RFC 4647, 3.4; read 2026-11). */
import { Array as Arr, Option, Order } from "effect"

/** One entry of an Accept or Accept-Language header: its range, in lower case, and its quality, 0 to 1. */
interface Preference {
  readonly range: string
  readonly quality: number
}

/** The quality of an offer; `precision` is how exactly the client named it. */
interface Liking {
  readonly quality: number
  readonly precision: number
}

const weight = /^\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*$/iu

/**
 * Parses the entries; malformed ones are ignored, and so are parameters other than `q`. Without header everything is accepted.
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

const byLiking = Order.Struct({ quality: Order.flip(Order.Number), precision: Order.flip(Order.Number) })

/**
 * Returns the offer with the highest quality, then the highest precision, then the first one. None if the client accepts none.
 */
const best = <Offer extends string>(offers: ReadonlyArray<Offer>, likingOf: (offer: Offer) => Liking): Option.Option<Offer> => {
  const liked = offers.map((offer) => ({ offer, ...likingOf(offer) })).filter(({ quality }) => quality > 0)
  return Option.map(Arr.head(Arr.sort(liked, byLiking)), ({ offer }) => offer)
}

const notNamed: Liking = { quality: 0, precision: 0 }

/** The most precise range that covers a media type decides: the type itself, its main type, or any type. */
export const mediaType = <Offer extends string>(
  header: string | undefined,
  offers: ReadonlyArray<Offer>
): Option.Option<Offer> => {
  const accepted = preferences(header, "*/*")
  return best(offers, (offer) => {
    const ranges = ["*/*", `${offer.split("/", 1).join("")}/*`, offer]
    const likings = ranges.flatMap((range, precision) =>
      accepted.filter((one) => one.range === range).map(({ quality }): Liking => ({ quality, precision }))
    )
    return likings.at(-1) ?? notNamed
  })
}

/** A client that names no coding gets the body uncompressed. */
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

/** `de-AT` accepts `de` too, unless `de` itself is refused. */
export const language = <Offer extends string>(
  header: string | undefined,
  offers: ReadonlyArray<Offer>
): Option.Option<Offer> => {
  const accepted = preferences(header, "*")
  return best(offers, (offer) => {
    const [itself] = accepted.filter(({ range }) => range === offer)
    if (itself?.quality === 0) return notNamed
    const named = accepted.filter(({ range }) => range === offer || range.startsWith(`${offer}-`))
    if (named.length > 0) return { quality: Math.max(...named.map(({ quality }) => quality)), precision: 1 }
    return { quality: accepted.find(({ range }) => range === "*")?.quality ?? 0, precision: 0 }
  })
}

/** Returns true for browsers, which name text/html. JSON is the default, also if no preference can be met. */
export const prefersPage = (accept: string | undefined): boolean =>
  Option.contains(mediaType(accept, ["application/json", "text/html"]), "text/html")
