/** Finds the route and the supported methods of a request path, for code outside of the router. */
import { Context, Result } from "effect"

/** A route. Its `path` has parameters in braces, and `*` for any number of further segments. */
export interface Route {
  readonly path: string
  readonly method: string
  /** True for a GET that is charged. Its path does not support HEAD, because clients expect that a HEAD is safe to repeat. */
  readonly isCharged?: boolean
}

export class RouteTable extends Context.Service<
  RouteTable,
  {
    /** Returns the route template of a request path; null without a match. */
    readonly templateOf: (path: string) => string | null
    /** Returns the methods that a path supports; none for an unknown path. */
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

/** Decodes the percent-escapes of a path, as the router does. If a path cannot be decoded, returns it unchanged. */
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
