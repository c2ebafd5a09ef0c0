/** Schemas of the baseline, with which Fastify validates requests and serializes responses faster. */

const nullable = { type: ["string", "null"] }

const ValidationResult = {
  type: "object",
  properties: {
    valid: { type: "boolean" },
    vat_id: { type: "string" },
    country_code: { type: "string" },
    vat_number: { type: "string" },
    company_name: nullable,
    company_address: nullable,
    source: { type: "string" },
    source_timestamp: nullable,
    cache: { type: "boolean" },
    qualified_confirmation: nullable,
    consultation_number: nullable,
    request_id: { type: "string" },
    requested_at: { type: "string" }
  }
}

const Usage = {
  type: "object",
  properties: {
    plan: { type: "string" },
    period: { type: "object", properties: { start: { type: "string" }, end: { type: "string" } } },
    requests: {
      type: "object",
      properties: { used: { type: "integer" }, remaining: { type: "integer" }, limit: { type: "integer" } }
    }
  }
}

const ErrorBody = { type: "object", properties: { error: { type: "string" } } }

export const validate = {
  params: { type: "object", properties: { vatId: { type: "string", minLength: 4, maxLength: 128 } } },
  querystring: { type: "object", properties: { force_live: { type: "boolean" } } },
  response: { 200: ValidationResult, 400: ErrorBody, 401: ErrorBody, 503: ErrorBody }
}

export const usage = { response: { 200: Usage, 401: ErrorBody } }
