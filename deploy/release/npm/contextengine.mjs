#!/usr/bin/env node
// Runs the program of this platform, which npm installed beside this package.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const platform = `contextengine-${process.platform}-${process.arch}`;
let program;
try {
  program = createRequire(import.meta.url).resolve(`${platform}/bin/contextengine${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`contextengine: the package ${platform} is not installed; install contextengine again without --omit=optional (there are packages for linux, darwin and win32 on x64 and arm64)`);
  process.exit(1);
}
// What ends this process is the child's to answer, from its first moment on.
let child;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => { child.kill(signal); });
child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (error) => {
  console.error(`contextengine: ${program} cannot be started (${error.code ?? "unknown"})`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
