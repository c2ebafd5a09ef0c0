/**
 * The lint rules of this project that oxlint does not have, in ESLint's format: `create` returns a function for each ESQuery selector.
 * `forbid` creates a rule that reports every match of a selector.
 */

interface Node {
  readonly type: string
}

interface Comment extends Node {
  readonly value: string
}

interface Rule {
  readonly create: (context: Context) => Record<string, (node: never) => void>
}

interface Context {
  readonly sourceCode: { readonly getAllComments: () => ReadonlyArray<Comment> }
  readonly report: (problem: { readonly node: Node; readonly message: string }) => void
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

/** Modules whose functions return an effect, which does nothing until it is yielded. `…Unsafe` functions act at once. */
const effectful =
  "Effect|Ref|SynchronizedRef|SubscriptionRef|Queue|PubSub|Deferred|Fiber|FiberSet|FiberMap|Semaphore|Latch|Cache|Stream"

const suppression = /^[\s*]*(?:oxlint|eslint)-(?:disable|enable)/u

/** Names of one or more rules, then the reason. */
const reasonedSuppression = /^\s*oxlint-disable-next-line [\w/-]+(?:, [\w/-]+)* -- \S.{9,}$/u

export default {
  meta: { name: "vatproof" },
  rules: {
    "no-throw": forbid("ThrowStatement", "Do not throw: `return yield*` a tagged error or Effect.die."),
    "no-try": forbid("TryStatement", "Use Effect.try, Result.try or an Effect operator."),
    "no-definite-assignment": forbid("[definite=true]", "Initialise the variable: `!` only silences the compiler."),
    "no-effect-run": forbid(
      "MemberExpression[object.name='Effect'][property.name=/^run(Sync|Promise|Fork|Callback)/]",
      "Do not run effects: only src/main.ts does. Write a test with `it.effect`."
    ),
    "no-floating-effect": forbid(
      `ExpressionStatement > CallExpression:matches([callee.property.name='pipe'], [callee.object.name=/^(${effectful})$/][callee.property.name!=/(Unsafe$|^run)/])`,
      "This effect is created and never runs: `yield*` it."
    ),
    "yield-star": forbid(
      "CallExpression > FunctionExpression[generator=true] YieldExpression[delegate=false]",
      "Write `yield*`: a plain `yield` does not run the effect."
    ),
    "no-re-export": forbid(
      ":matches(ExportAllDeclaration, ExportNamedDeclaration[source])",
      "Do not re-export: import each name from the file that defines it."
    ),
    "no-computed-import": forbid(
      "ImportExpression[source.type!='Literal']",
      "Import a constant module name: the import rules cannot check a computed one."
    ),
    "sql-named-columns": forbid(
      "TemplateElement[value.raw=/\\bselect\\s+(\\w+\\.)?\\*/i]",
      "Name the columns of a query instead of SELECT *."
    ),
    "sql-result-schema": forbid(
      "TaggedTemplateExpression[tag.name='sql'][typeArguments]",
      "The type argument is not checked: use SqlSchema with a result schema."
    ),
    "suppression-reason": forbidComment(
      (text) => (suppression.test(text) && !reasonedSuppression.test(text)) || /(?:oxfmt|prettier)-ignore/u.test(text),
      "Write a suppression as `oxlint-disable-next-line rule -- reason`, with a reason of at least 10 characters."
    ),
    "no-skipped-test": forbid(
      "MemberExpression[property.name=/^(skip|only|todo|fails|skipIf|runIf)$/]:matches([object.name=/^(it|test|describe|suite|layer)$/], [object.object.name=/^(it|test|describe|suite|layer)$/])",
      "Do not skip or focus tests: every test must run in every test run."
    )
  }
}
