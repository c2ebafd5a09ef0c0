/** Checks the files that deploy the service with the programs that read them. A program that is not installed skips its test. */
import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { Yaml } from "effect/encoding"
import { assert, describe, it, type TestContext } from "vitest"
import { projectRoot } from "#test/tooling/Planted.ts"

const operations = join(projectRoot, "docs/operations")
const run = (program: string, ...args: ReadonlyArray<string>) =>
  spawnSync("env", ["DOMAIN=vat.example.com", program, ...args], { cwd: operations, encoding: "utf8" })

/** Skips the test unless this command succeeds. */
const needs = (context: TestContext, program: string, ...args: ReadonlyArray<string>) =>
  context.skip(run(program, ...args).status !== 0, `skipped: ${program} ${args.join(" ")} does not work here`)

const succeeds = (program: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = run(program, ...args)
  assert.strictEqual(status, 0, `${program} ${args.join(" ")}: ${stdout}${stderr}`)
  return stdout
}

describe("the compose files", () => {
  it.each(["../../docker-compose.yml", "compose/small.yml"])("%s is accepted by Docker Compose", (file) => {
    const isHere = run("docker", "compose", "version").status === 0
    if (isHere) succeeds("docker", "compose", "--file", file, "config", "--quiet")
    else assert.isObject(Yaml.parse(readFileSync(join(operations, file), "utf8")))
  })

  it("name the same image of Postgres, so that a base backup matches its server", () => {
    const images = ["../../docker-compose.yml", "compose/small.yml"].map((file) =>
      /image: (postgres:\S+)/u.exec(readFileSync(join(operations, file), "utf8"))?.at(1)
    )
    assert.isDefined(images[0])
    assert.strictEqual(images[1], images[0])
  })
})

describe("the Kubernetes manifests", () => {
  const Manifest = Schema.Struct({ kind: Schema.String, metadata: Schema.Struct({ name: Schema.String }) })
  const manifestsOf = (text: string) =>
    text.split(/^---$/mu).map((document) => Schema.decodeUnknownSync(Manifest)(Yaml.parse(document)))

  it("name the image and its version once", () => {
    const files = readdirSync(join(operations, "kubernetes"), { recursive: true, encoding: "utf8" }).filter((path) =>
      path.includes(".")
    )
    const named = files.flatMap((path) =>
      Array.from(
        readFileSync(join(operations, "kubernetes", path), "utf8").matchAll(
          /^\s+(?:image: (?!(?:vatproof|postgres)$)|newName: |newTag: ).*$/gmu
        ),
        ([line]) => `${path}:${line.replace(/\s*(\w+):.*/u, " $1")}`
      )
    )
    assert.deepStrictEqual(
      named,
      ["newName", "newTag", "newName", "newTag"].map((key) => `kustomization.yaml: ${key}`)
    )
  })

  it("are built by Kustomize, with the optional parts and with a generated name for each secret", (context) => {
    needs(context, "kubectl", "kustomize", "kubernetes")
    const folder = mkdtempSync(join(tmpdir(), "vatproof-kubernetes-"))
    cpSync(join(operations, "kubernetes"), folder, { recursive: true })
    const file = join(folder, "kustomization.yaml")
    writeFileSync(file, readFileSync(file, "utf8").replaceAll("# - optional/", "- optional/"))
    const text = succeeds("kubectl", "kustomize", folder)
    rmSync(folder, { recursive: true })
    const manifests = manifestsOf(text)
    assert.sameMembers(
      manifests.map(({ kind }) => kind),
      (
        "Namespace ConfigMap Secret Secret Deployment Job PodDisruptionBudget Service Ingress NetworkPolicy PodMonitor " +
        "PersistentVolumeClaim PersistentVolumeClaim CronJob CronJob CronJob"
      ).split(" ")
    )
    for (const { metadata } of manifests.filter(({ kind }) => kind === "Secret")) {
      assert.match(metadata.name, /^vatproof(?:-administrator)?-[a-z0-9]{10}$/u)
      assert.include(text, `secretName: ${metadata.name}\n`)
    }
    assert.strictEqual(Array.from(text.matchAll(/image: registry\.example\.com\/vatproof:/gu)).length, 3)
  })

  it("are valid by the schemas of Kubernetes", (context) => {
    needs(context, "kubeconform", "-v")
    needs(context, "kubectl", "kustomize", "kubernetes")
    const input = succeeds("kubectl", "kustomize", "kubernetes")
    const { status, stderr, stdout } = spawnSync("kubeconform", ["-strict", "-"], { input, encoding: "utf8" })
    assert.strictEqual(status, 0, `${stdout}${stderr}`)
  })
})

describe("the files of one machine", () => {
  it("Caddy accepts its file", (context) => {
    needs(context, "caddy", "version")
    succeeds("caddy", "validate", "--adapter", "caddyfile", "--config", "proxy/Caddyfile")
  })

  it("HAProxy 3.0 or newer accepts its file", (context) => {
    const version = Number(/version (\d+\.\d+)/u.exec(run("haproxy", "-v").stdout ?? "")?.at(1))
    context.skip(!(version >= 3), "skipped: HAProxy 3.0 or newer is not installed")
    succeeds("haproxy", "-c", "-f", "proxy/haproxy.cfg")
  })

  it("systemd accepts the units", (context) => {
    needs(context, "systemd-analyze", "--version")
    const units = readdirSync(join(operations, "systemd")).map((name) => `systemd/${name}`)
    assert.lengthOf(units, 7)
    const { stderr } = run("systemd-analyze", "verify", ...units)
    // The command itself is installed only on the machine that runs the service.
    assert.deepStrictEqual(
      stderr.split("\n").filter((line) => /vatproof[\w-]*\.(?:service|timer)/u.test(line) && !line.includes("is not executable")),
      []
    )
  })
})

describe("the images", () => {
  it("the sandbox validates in a container without root, on a read-only root", (context) => {
    needs(context, "docker", "info")
    const base = /^FROM (node:\S+)/mu.exec(readFileSync(join(projectRoot, "Dockerfile"), "utf8"))?.at(1) ?? ""
    needs(context, "docker", "pull", "--quiet", base)
    succeeds("docker", "build", "--quiet", "--target", "sandbox", "--tag", "vatproof:sandbox-test", projectRoot)
    const container = succeeds("docker", "run", "--detach", "--rm", "--read-only", "--tmpfs=/tmp", "vatproof:sandbox-test").trim()
    const ask = `let tries = 0
      const ask = () => fetch("http://127.0.0.1:8080/v1/validate/ATU12345678").then((r) => r.text()).then(console.log,
        () => (tries++ < 240 ? setTimeout(ask, 250) : process.exit(1)))
      ask()`
    const { stderr, stdout } = run("docker", "exec", container, "node", "-e", ask)
    run("docker", "stop", container)
    assert.include(stdout, '"valid":true', stderr)
  }, 600_000)
})
