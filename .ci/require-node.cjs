// Stops with one sentence where Node is too old for this project. In a JavaScript that an old Node can read.
const [major, minor] = process.versions.node.split(".").map(Number)

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `vatproof needs Node 22.19 or later, but ${process.execPath} is Node ${process.versions.node}: ` +
      "install a newer one, or run `npm ci` without omitting optional packages, which brings Node 24 along on Linux.\n"
  )
  process.exitCode = 1
}
