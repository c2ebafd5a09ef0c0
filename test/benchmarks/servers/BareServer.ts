/** HTTP server that sends a fixed response to each request: `node BareServer.ts <port> '<headers and body as JSON>'`. */
import { Schema } from "effect"
import { createServer } from "node:http"

const Response = Schema.Struct({ headers: Schema.Record(Schema.String, Schema.String), body: Schema.String })

const [port, response] = process.argv.slice(2)
const { body, headers } = Schema.decodeUnknownSync(Schema.fromJsonString(Response))(response)

createServer((_, reply) => {
  reply.writeHead(200, headers)
  reply.end(body)
}).listen(Number(port), "127.0.0.1")
