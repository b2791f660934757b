// What outlives an engine instance. The host makes an instance for every turn, and registers the plugin several times in one process.
import { Budget } from "./budget.js";
import type { Settings } from "./config.js";
import { Connection } from "./connection.js";
import { adviceFor } from "./doctor.js";
import { textOf } from "./errors.js";
import type { Logger } from "./host-types.js";
import { PACKAGE, VERSION } from "./names.js";
import { hostSdk, type Sdk } from "./sdk.js";
import { Memory } from "./transcript.js";
import type { WireSession } from "./whitelist.js";

/** What is remembered of a session. Nothing here is needed: it saves bytes and time. */
export interface SessionState {
  memory: Memory;
  budget: Budget;
  /** What the host has stored was handed over in this process. */
  bootstrapped: boolean;
  /** What memory.weight said last. */
  weight: number;
}

const maxSessions = 500;
/** How many bytes of messages, about, are kept to compare with; beyond that the sessions that were used longest ago have theirs hashed anew. */
const mostWeight = 64 << 20;
const quietMs = 60_000;

/** One sidecar, and what this process knows of the sessions there. */
export class Shared {
  readonly #sessions = new Map<string, SessionState>();
  readonly #warned = new Map<string, number>();

  constructor(
    readonly settings: Settings,
    readonly connection: Connection,
    public logger: Logger,
    readonly sdk: () => Promise<Sdk> = hostSdk,
    private readonly maxWeight = mostWeight,
  ) {}

  state(session: WireSession): SessionState {
    const key = `${session.agent}\n${session.session}`;
    const state = this.#sessions.get(key) ?? { memory: new Memory(), budget: new Budget(), bootstrapped: false, weight: 0 };
    this.#sessions.delete(key); // the newest are at the end
    this.#sessions.set(key, state);
    if (this.#sessions.size > maxSessions) {
      const [oldest] = this.#sessions.keys();
      if (oldest !== undefined) this.#sessions.delete(oldest);
    }
    return state;
  }

  /** Keeps what is remembered of messages within its bound. The session at hand keeps what it has. */
  spare(current: SessionState): void {
    current.weight = current.memory.weight();
    let sum = 0;
    for (const state of this.#sessions.values()) sum += state.weight;
    for (const state of this.#sessions.values()) { // the oldest first
      if (sum <= this.maxWeight) return;
      if (state === current || state.weight === 0) continue;
      state.memory.lighten();
      sum -= state.weight;
      state.weight = 0;
    }
  }

  /** Tells an operator what failed and what to do about it; the same thing at most once a minute. */
  warn(what: string, error: unknown): void {
    const advice = adviceFor(error);
    const line = `${PACKAGE}: ${what}: ${textOf(error).replace(`${PACKAGE}: `, "")}${advice === "" ? "" : ` -> ${advice}`}`;
    const now = Date.now();
    const last = this.#warned.get(line);
    if (last !== undefined && now - last < quietMs) return;
    if (this.#warned.size > 200) this.#warned.clear();
    this.#warned.set(line, now);
    this.logger.warn(line);
  }
}

/** The host loads this module anew for the tools of a run, and a second sidecar on the same store would only be in the way of the first. */
const known = Symbol.for(`${PACKAGE}@${VERSION} sidecars`);
const sidecars = (((globalThis as unknown as Record<symbol, unknown>)[known] ??= new Map<string, Shared>()) as Map<string, Shared>);

/** The sidecar for a configuration: the same one in all of the process, however often the plugin is loaded and registered with it. */
export function sharedFor(settings: Settings, logger: Logger, hostVersion: string | undefined): Shared {
  const key = JSON.stringify(settings);
  let shared = sidecars.get(key);
  if (!shared) {
    shared = new Shared(settings, new Connection({ settings, env: process.env, logger, hostVersion }), logger);
    sidecars.set(key, shared);
  }
  return shared;
}
