// Exits with code 1 if Node is older than 24.7. The syntax is old, so that an old Node can run this file.
const [major, minor] = process.versions.node.split(".").map(Number)

if (major < 24 || (major === 24 && minor < 7)) {
  process.stderr.write(
    `vatproof needs Node 24.7 or later, but ${process.execPath} is Node ${process.versions.node}: ` +
      "install a newer one, or run `npm ci` without omitting optional packages, which installs Node 24 on Linux.\n"
  )
  process.exitCode = 1
}
