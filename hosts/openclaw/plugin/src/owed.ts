// Turns that the host handed over while the engine could not store them: kept on disk, a file each, until it can. The host would keep a turn as well, if it
// were refused, but then it answers without the engine until that turn is stored, and its own compaction is for good.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";

import type { HostMessage, TranscriptScope } from "./host-types.js";
import type { WireSession, WireSettings } from "./whitelist.js";

/** A turn as commitTurn tells it to the sidecar. */
export interface Turn {
  session: WireSession;
  advancementKey: string;
  messages: readonly HostMessage[];
  heartbeat?: boolean;
  settings?: WireSettings;
  transcriptScope?: TranscriptScope;
}

const name = (...parts: string[]): string => createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 32);
const suffix = ".json";
/** What a file is called until it is whole, and after how long one that is still called so was left by a process that ended: writing it takes moments. */
const draft = ".new";
const abandonedMs = 3_600_000;

/** The turns that are owed to an engine. Several processes may use the same folder: a turn is stored once per key, whoever brings it. */
export class Owed {
  #last = 0;

  /** root says where the turns are kept; undefined where there is no place for them. */
  constructor(private readonly root: () => Promise<string | undefined>) {}

  /** Keeps a turn; it is on disk when this returns. Throws where it cannot be kept. */
  async keep(turn: Turn): Promise<void> {
    const root = await this.root();
    if (root === undefined) throw new Error("there is no folder to keep turns in");
    const folder = join(root, name(turn.session.agent, turn.session.session));
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const key = `${name(turn.advancementKey)}${suffix}`;
    if ((await readdir(folder)).some((file) => file.endsWith(key))) return;
    // The newest is last, also after the clock was set back.
    const newest = (await files(folder)).at(-1);
    this.#last = Math.max(Date.now(), this.#last + 1, newest === undefined ? 0 : Number(newest.slice(0, 15)) + 1);
    const file = join(folder, `${String(this.#last).padStart(15, "0")}-${key}`);
    await write(`${file}${draft}`, JSON.stringify(turn));
    await rename(`${file}${draft}`, file);
    await sync(folder);
  }

  /** The files of a session's turns, the oldest first. Every turn asks, and nearly always there are none: seeing that at once takes less than waiting for somebody who sees it. */
  async of(session: WireSession): Promise<string[]> {
    const root = await this.root();
    if (root === undefined) return [];
    const folder = join(root, name(session.agent, session.session));
    if (!existsSync(folder)) return [];
    return (await files(folder)).map((file) => join(folder, file));
  }

  /** The sessions that turns are kept of. */
  async sessions(): Promise<WireSession[]> {
    const root = await this.root();
    if (root === undefined) return [];
    const out: WireSession[] = [];
    for (const folder of await list(root)) {
      const [first] = await files(join(root, folder));
      const turn = first === undefined ? undefined : await this.read(join(root, folder, first));
      if (turn) out.push(turn.session);
    }
    return out;
  }

  /** Removes what processes that ended while they kept a turn left. The host still has that turn: it was never told that it is kept. */
  async tidy(): Promise<void> {
    const root = await this.root();
    if (root === undefined) return;
    for (const folder of await list(root)) {
      for (const file of (await list(join(root, folder))).filter((one) => one.endsWith(draft))) {
        const path = join(root, folder, file);
        const age = await stat(path).then(({ mtimeMs }) => Date.now() - mtimeMs, () => 0);
        if (age > abandonedMs) await rm(path, { force: true });
      }
    }
  }

  /** Reads a turn; undefined where it was stored meanwhile. */
  async read(file: string): Promise<Turn | undefined> {
    try {
      return JSON.parse(await readFile(file, "utf8")) as Turn;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Forgets a turn that is stored. */
  async done(file: string): Promise<void> {
    await rm(file, { force: true });
  }
}

async function list(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

const files = async (folder: string): Promise<string[]> => (await list(folder)).filter((file) => file.endsWith(suffix)).sort();

async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function sync(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined); // not everywhere can a folder be opened
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
