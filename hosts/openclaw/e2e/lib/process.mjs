// Child processes, always with an end.
import { spawn } from 'node:child_process';

/** Runs a program to its end. Never throws for what the program does: the code says it. */
export function run(command, args, { env, cwd, timeoutMs, input } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data) => { stdout += data; });
    child.stderr.on('data', (data) => { stderr += data; });
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs ?? 60_000);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: signal ?? code, stdout, stderr });
    });
  });
}
