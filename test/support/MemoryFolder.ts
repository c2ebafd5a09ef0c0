/** The folder for databases of tests. In memory, the kernel needs much less processor time for their many small files. */
import { Effect } from "effect"
import { statfs } from "node:fs/promises"
import { tmpdir } from "node:os"

const memory = "/dev/shm"
/** Several databases with their write-ahead logs take about 2 GiB. A container often has only 64 MB. */
const freeBytesMin = 4 * 1024 ** 3

/** Returns /dev/shm if it has 4 GiB of free memory, else the folder for temporary files. */
export const find = Effect.tryPromise(() => statfs(memory)).pipe(
  Effect.map(({ bavail, bsize }) => (bavail * bsize >= freeBytesMin ? memory : tmpdir())),
  Effect.orElseSucceed(() => tmpdir())
)
