/** Describes the paths of tiles in the OpenAPI document (c2sp.org/tlog-tiles). The router has one path with a wildcard, which OpenAPI does not support. */
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
    description: "Level of the tile in the Merkle tree; tiles of level 0 contain the hashes of the events",
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
      "Number of the tile in its level, in groups of three digits. Each group but the last starts with `x`: 000, 999, x001/000, x001/x234/067. " +
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

/** Replaces the wildcard path by two OpenAPI paths: one of full tiles, one of the partial tiles at the end of the log. */
export const tilePaths = ({ "/v1/audit/tile/*": tile, ...paths }: Readonly<Record<string, PathItem>>) => {
  const get = tile?.["get"]
  if (get === undefined) return paths
  const full = { ...get, parameters: [level, index] }
  const partial = {
    ...get,
    operationId: "getPartialTile",
    summary: "Get a partial tile of the signed tree",
    parameters: [level, index, width]
  }
  return {
    ...paths,
    "/v1/audit/tile/{level}/{index}": { get: full },
    "/v1/audit/tile/{level}/{index}.p/{width}": { get: partial }
  }
}
