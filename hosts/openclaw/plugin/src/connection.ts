// The way to the sidecar: opened when first needed, opened again after it broke, with pauses that grow while it fails.
import { Agents } from "./agents.js";
import { Client, type CallOptions } from "./client.js";
import type { Settings } from "./config.js";
import { OutOfTime, ProtocolError, Unavailable, textOf } from "./errors.js";
import type { Logger } from "./host-types.js";
import { dial, launch, type Channel } from "./launch.js";
import { PACKAGE, VERSION } from "./names.js";
import type { OriginLogger } from "./origin.js";
import { nothingToStart, packagedProgram, programToStart } from "./packaged.js";

/** What the sidecar says about its engine. */
export interface EngineInfo {
  id?: string;
  name?: string;
  version?: string;
  ownsCompaction?: boolean;
}

export interface ConnectionOptions {
  settings: Settings;
  env: Readonly<Record<string, string | undefined>>;
  logger: Logger & Partial<OriginLogger>;
  /** The host's version, when it is known. */
  hostVersion?: string | undefined;
  /** Opens a channel; for tests. */
  open?: () => Channel;
  now?: () => number;
}

interface Live {
  client: Client;
  channel: Channel;
  engine: EngineInfo;
  /** The sidecar wants to know about agents, and was told so much of them. */
  asksForAgents: boolean;
  told: Map<string, { facts: string; done: Promise<void> }>;
}

const firstPauseMs = 200;
const longestPauseMs = 15_000;
/** A sidecar that did not answer in time is left alone for so many times as long. */
const restFactor = 4;
/** A connection that lived this long was no failure. */
const healthyMs = 5_000;
const endMs = 3_000;
/** How long a line of a sidecar is not repeated. */
const quietMs = 600_000;

/** The agent that a call is about. */
function agentIn(params: Readonly<Record<string, unknown>>): string | undefined {
  const { agent } = (params["session"] ?? params["parent"] ?? params["child"] ?? {}) as { agent?: unknown };
  return typeof agent === "string" ? agent : undefined;
}

/** A connection that mends itself. All its calls settle within their time. Safe for use by several sessions at once. */
export class Connection {
  #live: Promise<Live> | undefined;
  #engine: EngineInfo | undefined;
  #unusable: string | undefined;
  #failures = 0;
  #notBefore = 0;
  #stopped = false;
  readonly #channels = new Set<Channel>();
  /** What the sidecar is told about an agent before the first call about it. One that somebody else runs keeps things where its own configuration says. */
  readonly agents = new Agents();
  readonly #now: () => number;
  readonly #relayed = new Map<string, number>();

  constructor(private readonly options: ConnectionOptions) {
    this.#now = options.now ?? Date.now;
  }

  /** What the engine said when it was last reached. */
  get engine(): EngineInfo | undefined {
    return this.#engine;
  }

  /** Why no engine can be made of the configuration, as the sidecar said when it was last started; undefined where it could, and where nobody knows. */
  get unusable(): string | undefined {
    return this.#unusable;
  }

  /**
   * Calls a method, opening the connection where there is none. A call whose connection was lost is made once more in the time that is left: calling again is
   * safe, because turns are stored once per key, and what is ingested too.
   */
  async call(method: string, params: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown> {
    const end = this.#now() + options.timeoutMs;
    const agent = agentIn(params);
    if (agent !== undefined) this.agents.facts(agent); // whoever is spoken of first
    for (let attempt = 1; ; attempt++) {
      const live = await this.#reach(Math.min(this.options.settings.timeouts.connect, end - this.#now()));
      try {
        await this.#introduce(live, agent, end - this.#now());
        const left = end - this.#now();
        if (left <= 0) throw new OutOfTime(method, options.timeoutMs);
        return await live.client.call(method, params, { ...options, timeoutMs: left });
      } catch (error) {
        if (!(error instanceof Unavailable && error.lost) || attempt > 1 || this.#stopped || options.signal?.aborted) throw error;
      }
    }
  }

  /** Tells the sidecar about the agent of a call, unless it knows. */
  async #introduce(live: Live, agent: string | undefined, timeoutMs: number): Promise<void> {
    if (agent === undefined || !live.asksForAgents || timeoutMs <= 0) return;
    const facts = this.agents.facts(agent);
    const text = JSON.stringify(facts);
    const before = live.told.get(agent);
    if (before?.facts === text || (before === undefined && text === "{}")) return before?.done;
    const done = live.client.call("factory", { agent, ...facts }, { timeoutMs }).then((answer) => { this.#ignored(answer); }, (error: unknown) => {
      if (!(error instanceof ProtocolError)) {
        live.told.delete(agent);
        throw error;
      }
      this.#warn(`the sidecar does not take what the host says about the agent: ${error.message}`);
    });
    live.told.set(agent, { facts: text, done });
    return done;
  }

  #ignored(answer: unknown): void {
    const { ignored } = answer as { ignored?: unknown };
    for (const what of Array.isArray(ignored) ? ignored : []) this.#warn(`ignored in the host's configuration: ${String(what)}`);
  }

  /** Says something to the operator, once in a while. */
  #warn(what: string): void {
    if (this.#isNew(what)) this.options.logger.warn(`${PACKAGE}: ${what}`);
  }

  /** Asks what the engine is, unless it said so before; undefined when it cannot be reached in time. */
  async describe(timeoutMs: number): Promise<EngineInfo | undefined> {
    if (this.#engine && this.#unusable === undefined) return this.#engine;
    try {
      await this.#reach(timeoutMs);
    } catch {
      return this.#engine;
    }
    return this.#engine;
  }

  /** Ends what there is. The next call opens a new one, unless final. */
  async stop(final = true): Promise<void> {
    this.#stopped = final;
    const live = this.#live;
    this.#live = undefined;
    const client = await live?.then((l) => l.client, () => undefined);
    if (client) {
      // A sidecar that was told finishes what it has.
      await client.call("shutdown", {}, { timeoutMs: endMs }).catch(() => undefined);
    }
    const channels = [...this.#channels];
    for (const channel of channels) channel.end();
    const force = setTimeout(() => { for (const channel of channels) channel.destroy(); }, endMs);
    await Promise.all(channels.map((channel) => channel.gone));
    clearTimeout(force);
  }

  /** Ends what there is; the next call opens a new one, at once. */
  async renew(): Promise<void> {
    await this.stop(false);
    this.#failures = this.#notBefore = 0;
  }

  /** Allows calls again after a final stop. */
  revive(): void {
    this.#stopped = false;
  }

  async #reach(timeoutMs: number): Promise<Live> {
    if (this.#stopped) throw new Unavailable("the plugin was stopped");
    const opening = (this.#live ??= this.#open());
    opening.catch(() => { if (this.#live === opening) this.#live = undefined; });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => { reject(new Unavailable(`it did not answer within ${Math.max(0, Math.round(timeoutMs))} ms`)); }, Math.max(0, timeoutMs));
    });
    try {
      return await Promise.race([opening, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(): Promise<Live> {
    const pause = this.#notBefore - this.#now();
    if (pause > 0) throw new Unavailable(`it failed ${this.#failures} times; it is tried again in ${Math.ceil(pause / 1000)} s${this.#unusable === undefined ? "" : `; ${this.#unusable}`}`);
    const { settings, env, hostVersion } = this.options;
    const begun = this.#now();
    let channel: Channel;
    if (this.options.open) channel = this.options.open();
    else if (settings.socket !== undefined) channel = dial(settings.socket);
    else {
      const packaged = packagedProgram();
      const program = programToStart(settings, packaged);
      if (program === undefined) throw new Unavailable(nothingToStart(settings, packaged));
      channel = launch(program, settings, env, (line) => { this.#relay(line, channel.pid); });
    }
    this.#channels.add(channel);
    const client = new Client(
      { write: (text) => { channel.write(text); }, end: () => { channel.end(); }, destroy: () => { channel.destroy(); } },
      (level, message) => {
        const { warn, info } = this.#speaker(channel.pid);
        (level === "warn" ? warn : info)(`${PACKAGE}: sidecar: ${message.slice(0, 1000)}`);
      },
      settings.timeouts.unresponsive,
    );
    channel.onData((bytes) => { client.data(bytes); });
    const state = { open: false };
    channel.onClose((cause) => {
      this.#channels.delete(channel);
      client.closed(cause);
      if (!state.open) return;
      this.#live = undefined;
      if (this.#stopped) return;
      this.#speaker(channel.pid).warn(`${PACKAGE}: the sidecar is gone: ${cause}`);
      if (this.#now() - begun < healthyMs) this.#failed();
    });
    const facts = this.agents.facts();
    try {
      const answer = await client.call("initialize", {
        protocolVersions: ["1"],
        client: { name: PACKAGE, version: VERSION },
        host: { name: "openclaw", version: hostVersion ?? "unknown" },
        capabilities: ["delegated-compaction", "runtime-llm-complete", "bootstrap", "assemble-before-prompt", "after-turn", "maintain", "compact", "commit-turn", "subagent-spawn"],
        format: "pi",
        ...(settings.socket === undefined && Object.keys(facts).length > 0 ? { factory: facts } : {}),
        log: "warn",
      }, { timeoutMs: settings.timeouts.connect });
      const { engine, engineError, methods } = answer as { engine?: EngineInfo; engineError?: { message?: string }; methods?: unknown };
      this.#unusable = undefined;
      this.#ignored(answer);
      if (engine) this.#engine = engine;
      if (engineError) this.#speaker(channel.pid).error(`${PACKAGE}: the engine cannot be used as configured: ${engineError.message ?? "unknown cause"}`);
      this.#failures = 0;
      state.open = true;
      return { client, channel, engine: engine ?? {}, asksForAgents: settings.socket === undefined && Array.isArray(methods) && methods.includes("factory"), told: new Map() };
    } catch (error) {
      if (channel.misconfigured?.()) this.#unusable = textOf(error).replace(/^.*?not available: /, "");
      channel.destroy();
      this.#failed(error instanceof OutOfTime ? this.#now() - begun : 0);
      throw error instanceof Unavailable ? new Unavailable(error.message.replace(/^.*?not available: /, "")) : new Unavailable(`initialize: ${textOf(error)}`);
    }
  }

  /** lostMs is how long somebody may have waited in vain. */
  #failed(lostMs = 0): void {
    this.#failures++;
    // The first failure costs no pause: a sidecar that was killed is back at once. One that takes its time to fail is tried as rarely as that takes long.
    const pause = this.#failures === 1 ? 0 : Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - 2));
    this.#notBefore = this.#now() + Math.max(pause, restFactor * lostMs);
  }

  /** Who speaks for a sidecar. */
  #speaker(pid: number | undefined): Logger {
    return this.options.logger.of?.(pid) ?? this.options.logger;
  }

  /** Passes on what a sidecar wrote to standard error: warnings and errors as such, each once in a while, the rest for those who look closely. */
  #relay(line: string, pid: number | undefined): void {
    const logger = this.#speaker(pid);
    const text = `${PACKAGE}: sidecar: ${line}`;
    if (/\blevel=(INFO|DEBUG)\b/.test(line)) logger.debug?.(text);
    else if (!/\blevel=(WARN|ERROR)\b/.test(line)) logger.info(text);
    else if (this.#isNew(line.replace(/\b(time|count)=\S+/g, ""))) logger.warn(text);
    else logger.debug?.(text);
  }

  #isNew(text: string): boolean {
    const now = this.#now();
    const last = this.#relayed.get(text);
    if (last !== undefined && now - last < quietMs) return false;
    if (this.#relayed.size >= 200) this.#relayed.clear();
    this.#relayed.set(text, now);
    return true;
  }
}
