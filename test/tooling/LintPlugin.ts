/**
 * The rules of this project that oxlint does not have. They follow ESLint's rule format: `create` gives a visitor from ESQuery
 * selectors to functions. The rules that need no more than a selector are made by `forbid`.
 */

interface Node {
  readonly type: string
}

interface Comment extends Node {
  readonly value: string
}

interface Place {
  readonly line: number
  readonly column: number
}

const start: Place = { line: 1, column: 0 }

interface Rule {
  readonly create: (context: Context) => Record<string, (node: never) => void>
}

interface Context {
  readonly cwd: string
  readonly filename: string
  readonly sourceCode: { readonly getAllComments: () => ReadonlyArray<Comment> }
  readonly report: (
    problem: { readonly node: Node; readonly message: string } | { readonly loc: Place; readonly message: string }
  ) => void
}

const forbid = (selector: string, message: string): Rule => ({
  create: (context) => ({ [selector]: (node: Node) => context.report({ node, message }) })
})

const forbidComment = (isWrong: (text: string) => boolean, message: string): Rule => ({
  create: (context) => ({
    Program: () => {
      for (const node of context.sourceCode.getAllComments()) {
        if (isWrong(node.value)) context.report({ node, message })
      }
    }
  })
})

/** The path below the project's root, with `/` on every system: `src/domain/VatId.ts`. */
const pathOf = (context: Context): string => context.filename.slice(context.cwd.length + 1).replaceAll("\\", "/")

/** The modules whose functions give an effect, which does nothing until it is yielded. `…Unsafe` functions act at once. */
const effectful =
  "Effect|Ref|SynchronizedRef|SubscriptionRef|Queue|PubSub|Deferred|Fiber|FiberSet|FiberMap|Semaphore|Latch|Cache|Stream"

const suppression = /^[\s*]*(?:oxlint|eslint)-(?:disable|enable)/u

/** One rule or more by name, then the reason. */
const reasonedSuppression = /^\s*oxlint-disable-next-line [\w/-]+(?:, [\w/-]+)* -- \S.{9,}$/u

interface Named extends Node {
  readonly name?: string
  readonly value?: unknown
}

interface Call extends Named {
  readonly callee?: Call & { readonly object?: Named; readonly property?: Named }
  readonly arguments?: ReadonlyArray<Named>
}

interface ClassNode extends Node {
  readonly id: Named | null
  readonly superClass: Call | null
}

/** The id in `class X extends Context.Service<…>()(id)` or `class X extends Schema.TaggedError<X>()(id)`, and what it has to be. */
const classId: Rule = {
  create: (context) => ({
    ClassDeclaration: (node: ClassNode) => {
      const factory = node.superClass?.callee?.callee
      const id = node.superClass?.arguments?.[0]
      if (id === undefined || typeof id.value !== "string" || typeof node.id?.name !== "string") return
      const kind = `${factory?.object?.name}.${factory?.property?.name}`
      const folder = /^src\/(.*)\/[^/]+$/u.exec(pathOf(context))?.[1]
      const wanted = kind.startsWith("Schema.")
        ? node.id.name
        : kind.endsWith(".Service")
          ? `vatproof/${folder}/${node.id.name}`
          : id.value
      if (id.value !== wanted) context.report({ node: id, message: `The id of this class is "${wanted}".` })
    }
  })
}

interface ExportNode extends Node {
  readonly declaration:
    | (Node & { readonly id?: Named | null; readonly declarations?: ReadonlyArray<{ readonly id: Named }> })
    | null
  readonly specifiers: ReadonlyArray<{ readonly exported: Named }>
}

interface Export {
  readonly node: Node
  readonly name: string
}

const exportsOf = (node: ExportNode): ReadonlyArray<Export> =>
  [
    node.declaration?.id,
    ...(node.declaration?.declarations ?? []).map((declarator) => declarator.id),
    ...node.specifiers.map((specifier) => specifier.exported)
  ].flatMap((named) => (typeof named?.name === "string" ? [{ node: named, name: named.name }] : []))

const exportName: Rule = {
  create: (context) => ({
    ExportNamedDeclaration: (declaration: ExportNode) => {
      for (const { node, name } of exportsOf(declaration)) {
        if (/(?:Live|Impl|Shape|[a-z]V\d+)$/u.test(name)) {
          context.report({ node, message: "Name the thing, not its kind: no Live, Impl, Shape or V2." })
        }
      }
    }
  })
}

/** What a module read as a namespace (`Vies.layer`, `Batcher.make`, `Receipt.decide`) may export alone. */
const namespaceMembers = new Set(["layer", "make", "run", "decide", "evolve"])

const entryPoints = new Set(["src/main.ts", "src/cli.ts", "src/app.ts", "src/signing.ts"])

/** `memberStates` is the noun of `MemberStates.ts`, and `plans` that of `Plan.ts`. */
const noun = (name: string): string => name.toLowerCase().replace(/s$/u, "")

const misnamed = (stem: string, exported: ReadonlyArray<string>): string | undefined => {
  if (!/^[A-Z][A-Za-z0-9]*$/u.test(stem)) return "A file is named after the one thing it defines: Noun.ts."
  if (exported.some((name) => noun(name) === noun(stem))) return undefined
  const [only, ...others] = exported
  if (only === undefined) return `This file exports nothing; it should define ${stem}.`
  if (others.length === 0 && !namespaceMembers.has(only)) return `This file defines ${only} and is named ${stem}.`
  // A namespace of functions on the noun: `Register.companyOf`.
  if (exported.some((name) => /^[a-z]/u.test(name))) return undefined
  return `This file defines ${exported.join(", ")}, and none of them is ${stem}.`
}

/** The name of a file up to its first dot. */
const stemOf = (path: string): string => path.replace(/^.*\//u, "").replace(/\..*$/u, "")

const fileName: Rule = {
  create: (context) => {
    const path = pathOf(context)
    const exported: Array<string> = []
    return {
      ExportNamedDeclaration: (node: ExportNode) => void exported.push(...exportsOf(node).map(({ name }) => name)),
      "Program:exit": () => {
        const message = entryPoints.has(path) ? undefined : misnamed(stemOf(path), exported)
        if (message !== undefined) context.report({ loc: start, message })
      }
    }
  }
}

const vagueFile: Rule = {
  create: (context) => ({
    Program: () => {
      const vague = /(?:utils?|helpers?|common|types?|misc|index)$/iu.exec(stemOf(pathOf(context)))
      if (vague === null) return
      context.report({ loc: start, message: `"${vague[0]}" says nothing: name the file after the one thing it defines.` })
    }
  })
}

export default {
  meta: { name: "vatproof" },
  rules: {
    "no-throw": forbid("ThrowStatement", "Failures are values: `return yield*` a tagged error, or Effect.die."),
    "no-try": forbid("TryStatement", "Use Effect.try, Result.try or an Effect operator."),
    "no-definite-assignment": forbid("[definite=true]", "Initialise it: `!` tells the compiler to look away."),
    "no-effect-run": forbid(
      "MemberExpression[object.name='Effect'][property.name=/^run(Sync|Promise|Fork|Callback)/]",
      "Only src/main.ts runs effects; a test is an `it.effect`."
    ),
    "no-floating-effect": forbid(
      `ExpressionStatement > CallExpression:matches([callee.property.name='pipe'], [callee.object.name=/^(${effectful})$/][callee.property.name!=/(Unsafe$|^run)/])`,
      "This effect is made and dropped: it never runs. `yield*` it."
    ),
    "yield-star": forbid(
      "CallExpression > FunctionExpression[generator=true] YieldExpression[delegate=false]",
      "`yield*`: a plain `yield` does not run the effect."
    ),
    "no-re-export": forbid(
      ":matches(ExportAllDeclaration, ExportNamedDeclaration[source])",
      "No barrels: import each thing from the file that defines it."
    ),
    "no-computed-import": forbid(
      "ImportExpression[source.type!='Literal']",
      "Name the module: the rules on who may import whom cannot read a computed one."
    ),
    "sql-named-columns": forbid(
      "TemplateElement[value.raw=/\\bselect\\s+(\\w+\\.)?\\*/i]",
      "A query names its columns: no SELECT *."
    ),
    "sql-result-schema": forbid(
      "TaggedTemplateExpression[tag.name='sql'][typeArguments]",
      "The type argument is not checked: use SqlSchema with a result schema."
    ),
    "suppression-reason": forbidComment(
      (text) => (suppression.test(text) && !reasonedSuppression.test(text)) || /(?:oxfmt|prettier)-ignore/u.test(text),
      "A suppression is `oxlint-disable-next-line rule -- reason`, with a reason."
    ),
    "todo-number": forbidComment((text) => /\b(?:TODO|FIXME)\b(?!\(#\d+\))/u.test(text), "A TODO names its issue: TODO(#123)."),
    "no-banner": forbidComment(
      (text) => /[-=*#~_+]{5,}|[─━═]{3,}/u.test(text),
      "No banners: a section that needs one is a file."
    ),
    "no-skipped-test": forbid(
      "MemberExpression[property.name=/^(skip|only|todo|fails|skipIf|runIf)$/]:matches([object.name=/^(it|test|describe|suite|layer)$/], [object.object.name=/^(it|test|describe|suite|layer)$/])",
      "Every test runs, always."
    ),
    "class-id": classId,
    "no-vague-file": vagueFile,
    "file-name": fileName,
    "export-name": exportName
  }
}
