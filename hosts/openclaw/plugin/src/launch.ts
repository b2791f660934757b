// Starting a sidecar as a child process, and the environment it gets: never the host's own.
import { spawn } from "node:child_process";
import { connect } from "node:net";

import type { Settings } from "./config.js";
import { PLUGIN_ID } from "./names.js";

/** A channel that was opened, before anybody listens. */
export interface Channel {
  write: (text: string) => void;
  end: () => void;
  /** Ends it without waiting. */
  destroy: () => void;
  onData: (listener: (bytes: Buffer) => void) => void;
  /** Told once, with a cause for people. */
  onClose: (listener: (cause: string) => void) => void;
  /** Done when nothing of it is left. */
  gone: Promise<void>;
  /** The sidecar's process, where it was started here. */
  pid?: number | undefined;
  /** Reports whether it ended because its configuration cannot be used: no such engine or part, no such key. */
  misconfigured?: () => boolean;
}

/** Variables that any program needs to run. Everything else of the host's environment, keys above all, stays here. */
const plainVariables = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA"];

/** The environment of a sidecar. The OpenBrain key travels here and nowhere else. */
export function sidecarEnvironment(settings: Settings, env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const out: Record<string, string> = {};
  for (const name of [...plainVariables, ...settings.passEnv]) {
    const value = env[name];
    if (value !== undefined) out[name] = value;
  }
  if (settings.baseUrl !== "") out["OPENBRAIN_URL"] = settings.baseUrl;
  if (settings.apiKey !== "") out["OPENBRAIN_API_KEY"] = settings.apiKey;
  if (settings.configFile !== undefined) out["CONTEXTENGINE_CONFIG"] = settings.configFile;
  if (settings.engine !== undefined) out["CONTEXTENGINE_ENGINE"] = settings.engine;
  if (settings.configFile === undefined) {
    if (settings.failure === "strict") out["CONTEXTENGINE_FAILURE"] = settings.failure;
    // Without a file of its own the sidecar gets what the plugin's configuration says.
    const own = settings.engine === PLUGIN_ID;
    out[own ? "CONTEXTENGINE_ENGINE__RECENT_MESSAGES" : "CONTEXTENGINE_RECENT_MESSAGES"] = String(settings.recentMessages);
    out[own ? "CONTEXTENGINE_ENGINE__SUBAGENT_RECENT_MESSAGES" : "CONTEXTENGINE_SUBAGENTS__RECENT_MESSAGES"] = String(settings.subagentRecentMessages);
    out[own ? "CONTEXTENGINE_ENGINE__SEMANTIC_SEARCH_LIMIT" : "CONTEXTENGINE_RECALL__CANDIDATES"] = String(settings.semanticSearchLimit);
    if (own && settings.source !== undefined) out["CONTEXTENGINE_ENGINE__SOURCE"] = settings.source;
  }
  return out;
}

/** The exit code of a program whose command line or configuration is wrong, and how its last line begins: a crash of the program has the same code. */
const wrongConfiguration = 2;
const wrongLine = "error: ";

/** The command line of a sidecar. */
export function sidecarArguments(settings: Settings): readonly string[] {
  return settings.args ?? ["serve", "--stdio"];
}

/** Starts a sidecar. What it writes to standard error is given to log, line by line. */
export function launch(program: string, settings: Settings, env: Readonly<Record<string, string | undefined>>, log: (line: string) => void): Channel {
  const child = spawn(program, sidecarArguments(settings), { env: sidecarEnvironment(settings, env), stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  // A sidecar alone does not keep the host alive; calls under way do, by their timers.
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref?: () => void }).unref?.();

  let cause = "";
  let ended: number | null = null;
  let rest = "";
  let last = "";
  child.stderr.on("data", (bytes: Buffer) => {
    const lines = (rest + bytes.toString("utf8")).split("\n");
    rest = (lines.pop() ?? "").slice(-4096);
    for (const line of lines.filter((one) => one.trim() !== "")) {
      last = line.trim();
      log(line.slice(0, 1000));
    }
  });
  child.stdin.on("error", () => undefined); // closing says it
  const gone = new Promise<void>((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      cause = error.code === "ENOENT" ? "the program was not found; set command to its path" : `it could not be started (${error.code ?? "unknown"})`;
      if (child.pid === undefined) resolve();
    });
    child.once("close", (code, signal) => {
      ended = code;
      const said = (rest.trim() === "" ? last : rest.trim()).slice(0, 500);
      cause ||= signal ? `it was ended by ${signal}` : `it ended with code ${code ?? 0}${said === "" ? "" : `: ${said}`}`;
      resolve();
    });
  });
  return {
    write: (text) => child.stdin.write(text),
    end: () => child.stdin.end(),
    destroy: () => child.kill("SIGKILL"),
    onData: (listener) => child.stdout.on("data", listener),
    onClose: (listener) => void gone.then(() => { listener(cause); }),
    gone,
    pid: child.pid,
    misconfigured: () => ended === wrongConfiguration && last.startsWith(wrongLine),
  };
}

/** Connects to a sidecar that somebody else runs. */
export function dial(path: string): Channel {
  const socket = connect(path);
  socket.unref();
  let cause = "the connection was closed";
  socket.once("error", (error: NodeJS.ErrnoException) => {
    cause = error.code === "ENOENT" || error.code === "ECONNREFUSED" ? "nobody listens on the socket; start contextengine serve --socket" : `socket error ${error.code ?? "unknown"}`;
  });
  const gone = new Promise<void>((resolve) => socket.once("close", () => { resolve(); }));
  return {
    write: (text) => socket.write(text),
    end: () => socket.end(),
    destroy: () => socket.destroy(),
    onData: (listener) => socket.on("data", listener),
    onClose: (listener) => void gone.then(() => { listener(cause); }),
    gone,
  };
}
