// Ends with an error where Node is too old for this project. Written in JavaScript that an old Node can run.
const [major, minor] = process.versions.node.split(".").map(Number)

if (major < 24 || (major === 24 && minor < 7)) {
  process.stderr.write(
    `vatproof needs Node 24.7 or later, but ${process.execPath} is Node ${process.versions.node}: ` +
      "install a newer one, or run `npm ci` without omitting optional packages, which installs Node 24 on Linux.\n"
  )
  process.exitCode = 1
}
