/**
 * Verifies the folder of an export: the names of its files, and the content of the files that a verifier can compute from the
 * manifest.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import * as Manifest from "#events/log/export/ExportManifest.ts"
import { exportFiles, readmeOf } from "#events/log/export/ExportReadme.ts"
import { ExportCatalogue, personalFolder } from "#events/log/export/ExportTable.ts"
import { doctype, doctypeFile, indexFile, mediaDescription } from "#events/log/export/MediaDescription.ts"
import { exactText } from "#events/log/verify/ExactText.ts"
import type * as Findings from "#events/log/verify/Findings.ts"

/** The export cannot be verified, for example because its manifest or checkpoint is missing or invalid. */
export class NoExport extends Schema.TaggedError<NoExport>()("NoExport", { message: Schema.String }) {}

/**
 * Fails if the folder contains a symbolic link or a special file. A link could point outside of the folder, and reading a special
 * file could take forever.
 */
export const refuseLinks = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const look = Effect.fnUntraced(function* (name: string) {
    const { type } = yield* fs.lstat(path.join(directory, name))
    if (type !== "File" && type !== "Directory")
      return yield* new NoExport({
        message: `${name} is neither a file nor a folder (${type}); an export contains only files and folders`
      })
  })
  yield* Effect.forEach(yield* fs.readDirectory(directory, { recursive: true }), look, { concurrency: 16, discard: true })
})

/**
 * Returns the names and texts of the files that follow from the manifest. The manifest itself is the last one, because an export without
 * manifest is incomplete.
 */
export const textsOf = (manifest: Manifest.ExportManifest) =>
  Effect.map(
    ExportCatalogue,
    (catalogue) =>
      [
        [indexFile, mediaDescription(catalogue, manifest)],
        [doctypeFile, doctype],
        [exportFiles.readme, readmeOf(catalogue, manifest)],
        [exportFiles.manifest, Manifest.format(manifest)]
      ] as const
  )

/** Reports each file that follows from the parsed manifest and is missing or differs. */
export const compareTexts = Effect.fnUntraced(function* (
  directory: string,
  manifest: Manifest.ExportManifest,
  findings: Findings.Findings
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const [name, text] of yield* textsOf(manifest)) {
    const file = path.join(directory, name)
    const actual = (yield* fs.exists(file)) ? yield* exactText(file) : undefined
    if (actual !== text) findings.add(null, actual === undefined ? `${name} is missing` : `${name} was changed`)
  }
})

/** Names of files that operating systems put into folders. */
const ofSystems = /^(?:\..*|Thumbs\.db|desktop\.ini)$/u

/**
 * Reports each file that does not belong to an export, because a reader could mistake it for a part of the export. Also reports a
 * file of public keys that lacks the key of the checkpoint's signature.
 */
export const compareNames = Effect.fnUntraced(function* (
  directory: string,
  signedBy: ReadonlyArray<string>,
  findings: Findings.Findings
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { proved, references, tables } = yield* ExportCatalogue
  const expected = new Set<string>([
    ...Object.values(exportFiles),
    ...tables.map(({ file }) => file),
    proved.folder,
    references.folder,
    indexFile,
    doctypeFile,
    personalFolder
  ])
  const personal = path.join(directory, personalFolder)
  const inPersonal = (yield* fs.exists(personal)) ? yield* fs.readDirectory(personal) : []
  const names = [...(yield* fs.readDirectory(directory)), ...inPersonal.map((name) => `${personalFolder}/${name}`)]
  for (const name of names) {
    if (!expected.has(name) && !ofSystems.test(path.basename(name))) findings.add(null, `${name} is not a file of the export`)
  }
  const file = path.join(directory, exportFiles.verifier)
  if (!(yield* fs.exists(file))) return
  const keys = ((yield* exactText(file)) ?? "").split("\n")
  if (!keys.some((key) => signedBy.includes(key.trim())))
    findings.add(null, `${exportFiles.verifier} lacks the key that signed the checkpoint`)
})
