// Processor time of processes, in milliseconds, as the kernel counts it.
import { readFileSync, readdirSync } from 'node:fs';

export function processorTime(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export const children = (pid) => readdirSync(`/proc/${pid}/task`).flatMap((t) => readFileSync(`/proc/${pid}/task/${t}/children`, 'utf8').split(' ').filter(Boolean).map(Number));

/** That of a process's children, and of theirs. */
export const within = (pid) => children(pid).reduce((sum, child) => sum + processorTime(child) + within(child), 0);
