// Exports true if Node is 24.7 or later, else sets the exit code 1 and says why. The syntax is old, so that an old Node can run this file.
const [major, minor] = process.versions.node.split(".").map(Number)
const isSupported = major > 24 || (major === 24 && minor >= 7)

if (!isSupported) {
  process.stderr.write(
    `vatproof needs Node 24.7 or later, but ${process.execPath} is Node ${process.versions.node}: ` +
      "install a newer one. In a clone on Linux, `npm ci` with optional packages installs Node 24.\n"
  )
  process.exitCode = 1
}
module.exports = isSupported
