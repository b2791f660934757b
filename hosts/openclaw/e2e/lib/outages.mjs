// Ways in which an engine goes away under a running gateway, each with the way back. The store lies on a small disk of its own where the system lets one be made.
import { execFileSync } from 'node:child_process';
import { closeSync, copyFileSync, mkdirSync, openSync, readdirSync, readlinkSync, renameSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { until } from './wait.mjs';

const system = (...command) => execFileSync(command[0], command.slice(1), { stdio: 'pipe' });

/** The processes of a program; one whose file was taken away meanwhile is still its. */
export function processesOf(program) {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try { return readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '') === program; } catch { return false; }
  }).map(Number);
}

/** A folder on a disk of its own; undefined where that is not allowed. Its own namespace takes it away with the run. */
export function smallDisk(folder, size) {
  mkdirSync(folder, { recursive: true });
  try {
    system('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder);
  } catch {
    return undefined;
  }
  return { folder, remount: (how) => system('mount', '-o', `remount,${how}`, folder), unmount: () => system('umount', '-l', folder) };
}

/** Fills a disk to its last byte. */
function fill(file) {
  const out = openSync(file, 'w');
  try {
    for (const size of [1 << 20, 1 << 12, 1]) {
      try { for (;;) writeSync(out, Buffer.alloc(size)); } catch { /* nothing more of this size goes in */ }
    }
  } finally {
    closeSync(out);
  }
}

/**
 * The outages. begin and end are called once, each before a turn of it. lasts says that the engine cannot come back by itself meanwhile.
 */
export function outages({ program, original, store, disk }) {
  const kill = (signal = 'SIGKILL') => { for (const pid of processesOf(program)) process.kill(pid, signal); };
  const script = (text) => writeFileSync(program, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const restore = () => {
    rmSync(program, { force: true });
    copyFileSync(original, program);
  };
  return {
    removed: { lasts: true, begin: () => { renameSync(program, `${program}.away`); kill(); for (const pid of processesOf(`${program}.away`)) process.kill(pid, 'SIGKILL'); }, end: () => renameSync(`${program}.away`, program) },
    killed: { each: () => kill() },
    stopped: { each: () => kill('SIGSTOP') },
    hanging: { lasts: true, begin: () => { kill(); rmSync(program); script('exec sleep 1000'); }, end: restore },
    ...(disk ? {
      full: { lasts: true, begin: () => fill(join(disk.folder, 'filler')), end: () => rmSync(join(disk.folder, 'filler')) },
      // As long as the killed process is not gone the disk is busy.
      readonly: { lasts: true, begin: () => { kill(); return until(() => { try { disk.remount('ro'); return true; } catch { return false; } }, 30_000, 'the disk to be read-only'); }, end: () => disk.remount('rw') },
    } : {}),
    truncated: {
      lasts: true, loses: true,
      begin: () => truncateSync(store, Math.floor(statSync(store).size / 8192) * 4096 + 100),
      // Nothing can be done with such a store but to begin a new one.
      end: () => { kill(); for (const suffix of ['', '-wal', '-shm']) rmSync(`${store}${suffix}`, { force: true }); },
    },
  };
}
