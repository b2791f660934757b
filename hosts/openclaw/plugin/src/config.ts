// The plugin's configuration: what stands in plugins.entries.openbrain.config, checked.
import { PACKAGE, PLUGIN_ID } from "./names.js";

/** Longest times in milliseconds. */
export interface Timeouts {
  connect: number;
  assemble: number;
  commit: number;
  compact: number;
  maintain: number;
  call: number;
  /** How long a sidecar may be silent that owes answers. */
  unresponsive: number;
}

/** The checked configuration. It holds a key: it is never logged or sent. */
export interface Settings {
  /** The engine that the sidecar is told to use, and one of the ids that are registered. Undefined leaves it to configFile. */
  engine: string | undefined;
  baseUrl: string;
  apiKey: string;
  source: string | undefined;
  recentMessages: number;
  semanticSearchLimit: number;
  subagentRecentMessages: number;
  configFile: string | undefined;
  socket: string | undefined;
  /** Undefined: the packaged program, else contextengine on the PATH. */
  command: string | undefined;
  args: readonly string[] | undefined;
  /** Undefined allows the packaged program alone. */
  allowLaunch: boolean | undefined;
  passEnv: readonly string[];
  /** Undefined asks the engine. */
  ownsCompaction: boolean | undefined;
  /** Where Codex runs the model: thread puts the view into its thread once, turn into each turn. */
  codexProjection: "thread" | "turn";
  /** Agents are offered the recall tools. */
  tools: boolean;
  /** degrade: the plugin stands in for an engine that fails; strict: the host gets the error. */
  failure: "degrade" | "strict";
  timeouts: Timeouts;
}

type Raw = Readonly<Record<string, unknown>>;
type Environment = Readonly<Record<string, string | undefined>>;

const known = new Set([
  "baseUrl", "apiKey", "source", "recentMessages", "semanticSearchLimit", "subagentRecentMessages", "engine", "configFile", "socket", "command", "args",
  "allowLaunch", "passEnv", "ownsCompaction", "codexProjection", "tools", "failure", "connectTimeoutMs", "assembleTimeoutMs", "commitTimeoutMs", "compactTimeoutMs", "maintainTimeoutMs", "callTimeoutMs", "unresponsiveTimeoutMs",
]);

function fail(key: string, remedy: string): never {
  throw new Error(`${PACKAGE}: config: ${key}: ${remedy}`);
}

function text(raw: Raw, key: string): string | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") fail(key, "must be a text");
  return value.trim() === "" ? undefined : value.trim();
}

function whole(raw: Raw, key: string, otherwise: number, least: number, most: number): number {
  const value = raw[key];
  if (value === undefined || value === null) return otherwise;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) fail(key, `must be a whole number, ${least} to ${most}`);
  return value;
}

function flag(raw: Raw, key: string): boolean | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "boolean") fail(key, "must be true or false");
  return value;
}

function oneOf<T extends string>(raw: Raw, key: string, words: readonly [T, ...T[]]): T {
  const value = text(raw, key) ?? words[0];
  return words.find((word) => word === value) ?? fail(key, `must be ${words.join(" or ")}`);
}

function texts(raw: Raw, key: string): readonly string[] | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) fail(key, "must be a list of texts");
  return value.map((item: unknown) => (typeof item === "string" ? item : fail(key, "must be a list of texts")));
}

/**
 * Reads the plugin's configuration. Where it has no baseUrl or apiKey, OPENBRAIN_URL and OPENBRAIN_API_KEY count. Throws an Error that names the key and
 * never its value.
 */
export function readSettings(raw: Raw, env: Environment): Settings {
  for (const key of Object.keys(raw)) {
    if (!known.has(key)) fail(key, `is no setting of this plugin (known: ${[...known].sort().join(", ")})`);
  }
  const configFile = text(raw, "configFile");
  const engine = text(raw, "engine") ?? (configFile === undefined ? PLUGIN_ID : undefined);
  if (engine === "legacy") fail("engine", "must not be legacy; to use the host's own engine, set plugins.slots.contextEngine to legacy");
  const ms = (key: string, otherwise: number): number => whole(raw, key, otherwise, 10, 3_600_000);
  return {
    engine,
    baseUrl: text(raw, "baseUrl") ?? env["OPENBRAIN_URL"]?.trim() ?? "",
    apiKey: text(raw, "apiKey") ?? env["OPENBRAIN_API_KEY"]?.trim() ?? "",
    source: text(raw, "source"),
    recentMessages: whole(raw, "recentMessages", 20, 0, 100_000),
    semanticSearchLimit: whole(raw, "semanticSearchLimit", 10, 1, 10_000),
    subagentRecentMessages: whole(raw, "subagentRecentMessages", 8, 0, 100_000),
    configFile,
    socket: text(raw, "socket"),
    command: text(raw, "command"),
    args: texts(raw, "args"),
    allowLaunch: flag(raw, "allowLaunch"),
    passEnv: texts(raw, "passEnv") ?? [],
    ownsCompaction: flag(raw, "ownsCompaction"),
    codexProjection: oneOf(raw, "codexProjection", ["thread", "turn"]),
    tools: flag(raw, "tools") ?? true,
    failure: oneOf(raw, "failure", ["degrade", "strict"]),
    timeouts: {
      connect: ms("connectTimeoutMs", 10_000),
      assemble: ms("assembleTimeoutMs", 15_000),
      commit: ms("commitTimeoutMs", 20_000),
      compact: ms("compactTimeoutMs", 170_000),
      maintain: ms("maintainTimeoutMs", 170_000),
      call: ms("callTimeoutMs", 30_000),
      unresponsive: ms("unresponsiveTimeoutMs", 8_000),
    },
  };
}

/** Reports whether the engine that was asked for lacks its address or key. A sidecar behind a socket has its own. */
export function lacksCredentials(settings: Settings): boolean {
  return settings.socket === undefined && settings.engine === PLUGIN_ID && settings.configFile === undefined && (settings.baseUrl === "" || settings.apiKey === "");
}

/** The ids to register the engine under. */
export function engineIds(settings: Settings): string[] {
  const ids = [PLUGIN_ID, PACKAGE];
  if (settings.engine !== undefined && !ids.includes(settings.engine)) ids.push(settings.engine);
  return ids;
}
