/** Databases were made by these files, and refuse others of their names: what is to be different comes in a new one. */
import { assert, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"

const known = {
  "0001_event_log": "0df573f09dd5aeeee31210625491cb96de3c017288bb52312fad8074ae021f8b",
  "0002_accounts": "aaabe9abe43a967a11eb20352c935b45162ba9ef432989eefc324fe0ae25ce39",
  "0003_protection": "8ba16cb2b29e2ce93351942f4715d774163a63ed1afc5e673f1094ed112161ed",
  "0004_signup": "17659c5c13c893086f8790df80af3136554a111d2622475f35906b1ae0b8b6f6",
  "0005_outbox": "b241087c969ca3938453aa06e5e7df3c68ad4eb2de5c182ad96e55718495496a",
  "0006_notary": "28e421da9c488092293908ff2aa407b4435c577906ac624c714f9ea82ae5ac51",
  "0007_projections": "ca54e2449fafa2bb5fb9fa37c79c1d171202c60ce1456031dae8aeeafea34658",
  "0008_audit": "446bd2072763290c909d5f6226d69cc30a9987b904ba60919f629987b364023f",
  "0009_outbox_trace": "5294e7c869ceff063e936f07611c55083ea3b7cdcdcc9f5729f26983b8577703",
  "0010_readable_migrations": "075b718c9a0cb2e781627acf4f20bbdde88c6b13ef2175746e11cc4669b8df09",
  "0011_expand_append_by_command": "50300e96fb53da14ed05e9f203b5ad68d91de1bd7aa554a0007c0b8be7aeb3bc",
  "0012_expand_cheap_places": "da33616fa60c219f11bf91593d920ae05bcc93d7800f7cbc15b16e1f92714e36",
  "0013_expand_append_all": "97b1d2bceb0c631fe98a083dbbe325d417f80bf179e7e26f32221b3eaa86eb6c",
  "0014_expand_readable_json": "2a7aa3d64ceb606b0512952509dcd037d324f618f99af842e14a618550f24a77",
  "0015_expand_quiet_housekeeping": "f6217550a84424e401bdb057dddb49d5d0f46519276cdef4e12ddf7b303c76b5",
  "0016_expand_clock_set_back": "ada0c5abb3c53b64566b873115db5f0e4fd66908a020557128194569edd6723b",
  "0017_expand_newest_answer": "d6f9ee1e876a119088b6e001a4b7a34e0b6ec0c1a5f70eb22cd9834bacf8582b"
}

const folder = new URL("../../migrations/", import.meta.url)

it("migrations stay as they were applied: a new one is added to these, none is changed", () => {
  const digests = readdirSync(folder)
    .toSorted()
    .map((name) => [
      name.replace(/\.sql$/u, ""),
      createHash("sha256")
        .update(readFileSync(new URL(name, folder)))
        .digest("hex")
    ])
  assert.deepStrictEqual(Object.fromEntries(digests), known)
})
