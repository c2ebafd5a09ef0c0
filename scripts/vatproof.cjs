#!/usr/bin/env node
// The command of the installed package. The syntax is old, so that an old Node can run this file and say what it lacks.
if (require("../scripts/require-node.cjs")) {
  // Node's compile cache saves a third of the start time.
  require("node:module").enableCompileCache()
  import("../dist/main.js")
}
