/** The paths of tiles in the OpenAPI document: the router has one with a wildcard, which OpenAPI lacks (c2sp.org/tlog-tiles). */
import type { OpenApi } from "effect/http-api"

type PathItem = Readonly<Record<string, OpenApi.OpenAPISpecOperation>>

const level = {
  name: "level",
  in: "path" as const,
  required: true,
  schema: {
    type: "integer",
    minimum: 0,
    maximum: 63,
    description: "Level of the tile: level 0 contains the hashes of the events",
    examples: [0]
  }
}

const index = {
  name: "index",
  in: "path" as const,
  required: true,
  schema: {
    type: "string",
    pattern: String.raw`^(x\d{3}/){0,5}\d{3}$`,
    description:
      "Number of the tile in its level, in groups of three digits, all but the last with an `x`: 000, 999, x001/000, x001/x234/067. " +
      "Slashes may be sent literally or as %2F",
    examples: ["000"]
  }
}

const width = {
  name: "width",
  in: "path" as const,
  required: true,
  schema: { type: "integer", minimum: 1, maximum: 255, description: "Number of hashes in the tile", examples: [1] }
}

/** Replaces the wildcard path by two OpenAPI paths: full tiles, and partial ones at the log's end. */
export const tilePaths = ({ "/v1/audit/tile/*": tile, ...paths }: Readonly<Record<string, PathItem>>) => {
  const get = tile?.["get"]
  if (get === undefined) return paths
  const full = { ...get, parameters: [level, index] }
  const partial = {
    ...get,
    operationId: "getPartialTile",
    summary: "A partial tile of the signed tree",
    parameters: [level, index, width]
  }
  return {
    ...paths,
    "/v1/audit/tile/{level}/{index}": { get: full },
    "/v1/audit/tile/{level}/{index}.p/{width}": { get: partial }
  }
}
