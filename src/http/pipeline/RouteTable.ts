/** The routes by path, for code around the router: the route of a path, and the methods it supports. */
import { Context, Result } from "effect"

/** `path` has its parameters in braces, and `*` for a rest of any length. */
export interface Route {
  readonly path: string
  readonly method: string
  /** A charged GET has no HEAD, which clients may repeat at will. */
  readonly isCharged?: boolean
}

export class RouteTable extends Context.Service<
  RouteTable,
  {
    /** Returns the route template of a request path; null without a match. */
    readonly templateOf: (path: string) => string | null
    /** Returns the methods of a path; none if it does not exist. */
    readonly allowedMethods: (path: string) => ReadonlyArray<string>
  }
>()("vatproof/http/pipeline/RouteTable") {}

export const makeRouteTable = (routes: ReadonlyArray<Route>): RouteTable["Service"] => {
  const table = Array.from(Map.groupBy(routes, ({ path }) => path)).map(([path, sharing]) => ({
    path,
    pattern: patternOf(path),
    methods: sharing.flatMap(({ isCharged = false, method }) => (method === "GET" && !isCharged ? ["GET", "HEAD"] : [method]))
  }))
  const routeOf = (path: string) => {
    const readable = unescaped(path)
    return table.find(({ pattern }) => pattern.test(readable))
  }
  return {
    templateOf: (path) => routeOf(path)?.path ?? null,
    allowedMethods: (path) => routeOf(path)?.methods ?? []
  }
}

/** The router decodes escapes before it compares; a path that cannot be decoded matches no route. */
const unescaped = (path: string) =>
  path.includes("%")
    ? Result.getOrElse(
        Result.try(() => decodeURI(path)),
        () => path
      )
    : path

const patternOf = (template: string) =>
  new RegExp(
    `^${template
      .replace(/[.]/gu, "\\.")
      .replace(/\{\w+\}/gu, "[^/]+")
      .replace(/\*/gu, ".+")}$`,
    "u"
  )
