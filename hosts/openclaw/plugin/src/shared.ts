// What outlives an engine instance. The host makes an instance for every turn, and registers the plugin several times in one process.
import { join } from "node:path";

import { Budget } from "./budget.js";
import type { CallOptions } from "./client.js";
import type { Settings } from "./config.js";
import { Connection } from "./connection.js";
import { Cut } from "./cut.js";
import { adviceFor, whileOut } from "./doctor.js";
import { Code, OutOfTime, ProtocolError, Unavailable, outOfOrder, textOf } from "./errors.js";
import { Health } from "./health.js";
import type { Logger } from "./host-types.js";
import { PACKAGE, PLUGIN_ID, VERSION } from "./names.js";
import { named } from "./origin.js";
import { Owed, type Turn } from "./owed.js";
import { hostSdk, type Sdk } from "./sdk.js";
import { Memory } from "./transcript.js";
import type { WireSession } from "./whitelist.js";

/** What is remembered of a session. Nothing here is needed: it saves bytes and time. */
export interface SessionState {
  memory: Memory;
  budget: Budget;
  cut: Cut;
  /** The epoch of the engine's newest answer. */
  epoch?: number;
  /** What the host has stored was handed over in this process. */
  bootstrapped: boolean;
  /** What memory.weight said last. */
  weight: number;
}

const maxSessions = 500;
/** How many bytes of messages, about, are kept to compare with; beyond that the sessions that were used longest ago have theirs hashed anew. */
const mostWeight = 64 << 20;
const quietMs = 60_000;
/** Calls that every turn needs. */
const needed: ReadonlySet<string> = new Set(["bootstrap", "assemble", "commitTurn", "afterTurn", "ingestBatch", "ingest"]);
/** Calls whose answer alone does not say that they worked. */
const checked: ReadonlySet<string> = new Set(["assemble", "commitTurn"]);
/** Calls that may take long without anybody waiting, or have a second way. */
const patient: ReadonlySet<string> = new Set(["compact", "maintain"]);

const lineOf = (what: string, error: unknown): string => `${PACKAGE}: ${what}: ${textOf(error).replace(`${PACKAGE}: `, "")}`;

/** One sidecar, and what this process knows of the sessions there. */
export class Shared {
  readonly #sessions = new Map<string, SessionState>();
  readonly #warned = new Map<string, number>();
  readonly #health = new Map<string, Health>();
  /** Of sessions in which the engine has faults of its own. */
  readonly #faulty = new Map<string, Health>();
  readonly #settling = new Map<string, Promise<void>>();
  readonly owed: Owed;

  constructor(
    readonly settings: Settings,
    readonly connection: Connection,
    public logger: Logger,
    readonly sdk: () => Promise<Sdk> = hostSdk,
    private readonly maxWeight = mostWeight,
  ) {
    this.owed = new Owed(async () => {
      const folder = (await this.sdk()).resolveStateDir?.();
      return folder === undefined ? undefined : join(folder, PLUGIN_ID, "owed");
    });
  }

  state(session: WireSession): SessionState {
    const key = `${session.agent}\n${session.session}`;
    const state = this.#sessions.get(key) ?? { memory: new Memory(), budget: new Budget(), cut: new Cut(), bootstrapped: false, weight: 0 };
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

  health(agent: string): Health {
    const health = this.#health.get(agent) ?? new Health();
    if (this.#health.size > maxSessions) this.#health.clear();
    this.#health.set(agent, health);
    return health;
  }

  /** What is wrong in one session alone: faults are counted there, and what cannot be reached is the agent's. */
  #faults(session: WireSession): Health {
    const key = `${session.agent}\n${session.session}`;
    const health = this.#faulty.get(key) ?? new Health();
    if (this.#faulty.size > maxSessions) this.#faulty.clear();
    this.#faulty.set(key, health);
    return health;
  }

  /** What keeps the engine from a session: a fault there, or what is wrong with the agent's. */
  healthOf(session: WireSession): Health {
    const own = this.#faulty.get(`${session.agent}\n${session.session}`);
    return own?.out === true ? own : this.health(session.agent);
  }

  /** Calls a method for a session. An engine that took too long is left alone for a while. */
  async call(session: WireSession, method: string, fields: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown> {
    const health = this.health(session.agent);
    const pause = health.pause();
    if (pause > 0) throw new Unavailable(`the engine took too long; it is asked again in ${Math.ceil(pause / 1000)} s`);
    const begun = Date.now();
    try {
      const answer = await this.connection.call(method, fields, options);
      if (!checked.has(method)) this.works(session, method);
      return answer;
    } catch (error) {
      if (error instanceof OutOfTime && !patient.has(method)) health.slow(Date.now() - begun);
      throw error;
    }
  }

  /** A call failed. Where the engine is out of order that is said once, until everything works again. */
  failed(session: WireSession, what: string, error: unknown): void {
    if (!outOfOrder(error)) {
      this.warn(what, error);
      return;
    }
    // Faults are the engine's own, in this session or in all: after some in a row it is set aside, which is for a person to end. Nothing of it is hidden by starting it anew.
    const fault = error instanceof ProtocolError && (error.code === Code.quarantined || error.code === Code.internal);
    if (!needed.has(what)) {
      if (!this.healthOf(session).out) this.warn(what, error);
      return;
    }
    const own = this.#faults(session);
    const [health, other] = fault ? [own, this.health(session.agent)] : [this.health(session.agent), own];
    // What comes back may be another store: it is asked anew what it has of each session.
    if (health.failed(what)) for (const state of fault ? [this.state(session)] : this.#sessions.values()) state.bootstrapped = false;
    if (!health.said && !other.said) {
      health.said = true;
      this.logger.warn(`${lineOf(what, error)} -> ${whileOut(this.settings.failure)}${adviceFor(error) === "" ? "" : `; ${adviceFor(error)}`}`);
    } else {
      this.logger.debug?.(lineOf(what, error));
    }
    if (!(error instanceof ProtocolError)) return;
    if (error.code === Code.quarantined && health.setAside()) this.logger.warn(`${lineOf(what, error)} -> ${adviceFor(error)}; this is said once`);
    if (fault) return;
    // A sidecar that goes on failing may hold on to a store that is gone.
    if (this.settings.socket === undefined && health.renewal()) void this.connection.stop(false);
  }

  /** Lets an engine that was set aside try again, and stores what is owed. A sidecar of the plugin's own is started anew, so that it opens its store again. Throws where that fails. */
  async retry(session: WireSession): Promise<void> {
    if (this.settings.socket === undefined) await this.connection.renew();
    else await this.connection.call("retry", { session }, { timeoutMs: this.settings.timeouts.call });
    for (const health of [...this.#health.values(), ...this.#faulty.values()]) health.retried();
    for (const state of this.#sessions.values()) state.bootstrapped = false;
    await this.call(session, "bootstrap", { session }, { timeoutMs: this.settings.timeouts.call });
    await this.settle(session);
    void this.catchUp();
  }

  /** A call worked. */
  works(session: WireSession, what: string): void {
    const key = `${session.agent}\n${session.session}`;
    const troubles: [Health | undefined, string][] = [[this.health(session.agent), ""], [this.#faulty.get(key), ` in ${session.agent}/${session.session}`]];
    for (const [health, where] of troubles) {
      const [seconds, said] = [Math.ceil((health?.lasted() ?? 0) / 1000), health?.said === true];
      if (health?.works(what) !== true) continue;
      if (said) this.logger.info(`${PACKAGE}: the engine is back${where} after ${seconds} s`);
      void this.catchUp();
    }
    if (this.#faulty.get(key)?.out === false) this.#faulty.delete(key);
  }

  /** Stores what is owed of a session. Throws where the engine is out of order; what it refuses stays. */
  settle(session: WireSession): Promise<void> {
    const key = `${session.agent}\n${session.session}`;
    const running = this.#settling.get(key) ?? this.#settle(session).finally(() => this.#settling.delete(key));
    this.#settling.set(key, running);
    return running;
  }

  async #settle(session: WireSession): Promise<void> {
    let stored = 0;
    const unreadable = (error: unknown): undefined => { this.warn("reading turns that were kept", error); };
    for (const file of await this.owed.of(session).catch(unreadable) ?? []) {
      const turn = await this.owed.read(file).catch(unreadable);
      if (!turn) continue;
      try {
        await this.commit(turn, { timeoutMs: this.settings.timeouts.commit });
        await this.owed.done(file);
        stored++;
      } catch (error) {
        if (outOfOrder(error)) throw error;
        this.warn("commitTurn", error);
      }
    }
    if (stored === 0) return;
    this.logger.info(`${PACKAGE}: ${stored === 1 ? "a turn that was kept is" : `${stored} turns that were kept are`} stored`);
    this.works(session, "commitTurn");
  }

  /** Stores what is owed of every session, as far as that works now. */
  async catchUp(): Promise<void> {
    try {
      await this.owed.tidy();
      for (const session of await this.owed.sessions()) await this.settle(session);
    } catch (error) {
      this.logger.debug?.(lineOf("commitTurn", error));
    }
  }

  /** Hands a turn over. Throws unless the sidecar says that it is stored. */
  async commit(turn: Turn, options: CallOptions): Promise<"committed" | "duplicate"> {
    const { status } = await this.call(turn.session, "commitTurn", { ...turn }, options) as { status?: unknown };
    if (status !== "committed" && status !== "duplicate") throw new Error(`${PACKAGE}: commitTurn: the sidecar did not say that the turn is stored`);
    return status;
  }

  /** Tells an operator what failed and what to do about it; the same thing at most once a minute. */
  warn(what: string, error: unknown): void {
    const advice = adviceFor(error);
    const line = `${lineOf(what, error)}${advice === "" ? "" : ` -> ${advice}`}`;
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
    const own = named(logger);
    shared = new Shared(settings, new Connection({ settings, env: process.env, logger: own, hostVersion }), own);
    sidecars.set(key, shared);
  }
  return shared;
}
