// Where planted secrets are found.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of the regular files below a folder. */
function files(folder) {
  return readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))).filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile());
}

/** Texts that say which secret stands in which file. @param {Record<string, string>} secrets @param {string[]} paths files or folders */
export function leaks(secrets, paths) {
  const out = [];
  for (const path of paths.flatMap((p) => (statSync(p).isDirectory() ? files(p) : [p]))) {
    const bytes = readFileSync(path);
    for (const [name, value] of Object.entries(secrets)) if (bytes.includes(value)) out.push(`${name} in ${path}`);
  }
  return out;
}
