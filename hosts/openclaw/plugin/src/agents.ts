// What the host knows about its agents when it makes an engine: their folders, and the limits of history in its section of channels. This much of its configuration
// crosses to a sidecar that the plugin starts, and no more: the section holds tokens.
import { isAbsolute } from "node:path";

import { compacted } from "./whitelist.js";

/** An agent's folders; a host that does not know one leaves it out. */
export interface Folders {
  agentDir?: string;
  workspaceDir?: string;
}

/** What the sidecar is told about an agent. */
export interface Facts extends Folders {
  channels?: object;
}

/** The host's own way to an agent's folders, for calls that no engine was made for: a tool's, a command's. */
export interface FolderFinder {
  resolveAgentDir?: (config: unknown, agent: string) => unknown;
  resolveAgentWorkspaceDir?: (config: unknown, agent: string) => unknown;
}

type Tree = Readonly<Record<string, unknown>>;

const tree = (value: unknown): Tree | undefined => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Tree) : undefined);
const folder = (value: unknown): string | undefined => (typeof value === "string" && isAbsolute(value) && Buffer.byteLength(value) <= 4096 ? value : undefined);
const foldersOf = (said: Tree): Folders => compacted<Folders>({ agentDir: folder(said["agentDir"]), workspaceDir: folder(said["workspaceDir"]) });

/** What is looked for in a section: a limit, the same in all members of a table, or some of its keys. */
type Shape = "limit" | { each: Shape } | { keys: Readonly<Record<string, Shape>> };

const peers: Shape = { each: { keys: { historyLimit: "limit" } } };
const account = { historyLimit: "limit", dmHistoryLimit: "limit", dms: peers } as const;
const channels: Shape = { each: { keys: { ...account, accounts: { each: { keys: account } } } } };

/** The part of a value that has a shape. What is of another kind is left as something empty of its kind: the sidecar names it. */
function picked(value: unknown, shape: Shape): unknown {
  const table = tree(value);
  if (shape === "limit" || !table) return typeof value === "number" ? value : Array.isArray(value) ? [] : table ? {} : typeof value === "string" ? "" : typeof value === "boolean" ? false : undefined;
  const kept: [string, unknown][] = [];
  for (const [key, member] of Object.entries(table)) {
    const below = "each" in shape ? shape.each : Object.hasOwn(shape.keys, key) ? shape.keys[key] : undefined;
    const found = below === undefined ? undefined : picked(member, below);
    const nothing = below !== "limit" && tree(found) !== undefined && Object.keys(found as object).length === 0;
    if (found !== undefined && !nothing) kept.push([key, found]);
  }
  return Object.fromEntries(kept);
}

/** What is known of a process's agents. */
export class Agents {
  #config: Tree = {};
  #channels: object | undefined;
  #finder: FolderFinder | undefined;
  /** The folders of the agent that was spoken of first. */
  #first: Folders | undefined;
  readonly #folders = new Map<string, Folders>();

  /** The host's configuration as it is now, and its way to folders where it has one. */
  configured(config: unknown, finder = this.#finder): void {
    this.#finder = finder;
    const now = tree(config);
    if (!now || now === this.#config) return;
    this.#config = now;
    const found = tree(picked(now["channels"], channels));
    this.#channels = found && Object.keys(found).length > 0 ? found : undefined;
  }

  /** What the host's factory was handed. It does not say for whom: the first call of the engine does. */
  made(context: unknown, agent?: string): void {
    const folders = foldersOf(tree(context) ?? {});
    if (folders.agentDir !== undefined) this.#keep(folders, agent);
  }

  /** What the sidecar is to know about an agent; without one, about those that nothing else is said of. */
  facts(agent?: string): Facts {
    const folders = agent === undefined ? this.#first : this.#folders.get(agent) ?? this.#keep(this.#found(agent), agent);
    return compacted<Facts>({ ...folders, channels: this.#channels });
  }

  /** What was said first stays: what is stored lies there. */
  #keep(folders: Folders, agent: string | undefined): Folders {
    if (folders.agentDir === undefined) return folders;
    this.#first ??= folders;
    if (agent !== undefined && !this.#folders.has(agent)) this.#folders.set(agent, folders);
    return folders;
  }

  #found(agent: string): Folders {
    try {
      return foldersOf({ agentDir: this.#finder?.resolveAgentDir?.(this.#config, agent), workspaceDir: this.#finder?.resolveAgentWorkspaceDir?.(this.#config, agent) });
    } catch {
      return {}; // an agent that the host does not know
    }
  }
}
