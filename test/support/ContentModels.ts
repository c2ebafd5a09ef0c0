/** Checks the elements of an XML document against the content models of its document type, without attributes and mixed content. */

/** Returns a content model as a regular expression over the names of the children, each followed by a comma. */
const modelOf = (model: string) => {
  const text = model.replace(/\s+/gu, "")
  if (text === "EMPTY" || text === "(#PCDATA)") return /^$/u
  // Adds a space to every name, removes the commas between the names, and turns the spaces into commas.
  const parts = text
    .replace(/[A-Za-z0-9]+/gu, (name) => `(?:${name} )`)
    .replaceAll(",", "")
    .replaceAll(" ", ",")
  return new RegExp(`^${parts}$`, "u")
}

/** Returns the violations of the document type; none if the document is valid. */
export const invalidities = (xml: string, doctype: string): ReadonlyArray<string> => {
  const declared = new Map(
    [...doctype.replace(/<!--[\s\S]*?-->/gu, "").matchAll(/<!ELEMENT\s+(\w+)\s+([^>]+)>/gu)].map(([, name = "", model = ""]) => [
      name,
      modelOf(model)
    ])
  )
  const errors: Array<string> = []
  const open: Array<{ readonly name: string; children: string }> = []
  const close = () => {
    const element = open.pop()
    if (element === undefined) return
    const model = declared.get(element.name)
    if (model === undefined) errors.push(`${element.name} is not declared`)
    else if (!model.test(element.children)) errors.push(`${element.name} may not have the children ${element.children}`)
  }
  for (const [, slash, name = "", empty] of xml.matchAll(/<(\/?)([A-Z]\w*)(\s*\/)?>/gu)) {
    if (slash === "/") {
      if (open.at(-1)?.name !== name) errors.push(`the end tag of ${name} does not match the open element`)
      close()
      continue
    }
    const parent = open.at(-1)
    if (parent !== undefined) parent.children += `${name},`
    open.push({ name, children: "" })
    if (empty !== undefined) close()
  }
  return open.length === 0 ? errors : [...errors, `${open.at(-1)?.name} is not closed`]
}
