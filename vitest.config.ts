import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/benchmarks/**"],
    globalSetup: "test/support/globalSetup.ts",
    // Processes, because tests start, signal and kill others; three, because on two cores one of them often waits for a server.
    pool: "forks",
    maxWorkers: 3,
    // The files of a worker share its modules, which Node loads itself: loading them took more than testing.
    isolate: false,
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Real servers answer in milliseconds; these are for a machine that is busy with something else.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    reporters: ["default"],
    silent: "passed-only"
  }
})
