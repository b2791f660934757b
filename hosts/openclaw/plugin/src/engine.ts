// The members of a context engine, as the host calls them. Every one is a translation: the decisions are the sidecar's.
import { assemble, type Turn } from "./assemble.js";
import { hostSide } from "./callbacks.js";
import type { CallOptions } from "./client.js";
import { lacksCredentials } from "./config.js";
import { textOf } from "./errors.js";
import { isConversation, storedHistory } from "./history.js";
import type { AfterTurnParams, AssembleParams, CommitTurnParams, CompactParams, CompactResult, ContextEngine, HostMessage, SessionParams, SpawnParams } from "./host-types.js";
import { MISSING_CREDENTIALS, PACKAGE, VERSION } from "./names.js";
import type { Shared } from "./shared.js";
import { compacted, compactionOf, sessionOf, sessionOfKey, settingsOf } from "./whitelist.js";

interface BootstrapAnswer {
  bootstrapped?: boolean;
  imported?: number;
  reason?: string;
  /** Messages of the session that are in force; sidecars that do not say so get no history here. */
  known?: number;
}

const noRewrite = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };

/** Makes the engine of one logical turn. */
export function newEngine(shared: Shared, id: string, ownsCompaction: boolean): ContextEngine {
  return new Engine(shared, id, ownsCompaction);
}

class Engine implements ContextEngine {
  readonly info: Record<string, unknown>;
  readonly #turn: Turn = { assembled: false, sections: [] };
  /** What happened last: the host does not say what a maintenance is for. */
  #last: "bootstrap" | "turn" | "compaction" | "nothing" = "nothing";

  constructor(private readonly shared: Shared, id: string, ownsCompaction: boolean) {
    this.info = {
      id,
      name: "OpenBrain context engine",
      version: VERSION,
      ownsCompaction,
      turnMaintenanceMode: "background",
      acceptedHostParams: ["sessionKey", "prompt", "runtimeSettings", "sessionTarget", "runtimeContext", "abortSignal"],
      transcriptSemantics: { currentTurnFence: "before-current-turn-entry-v1", turnAdvancementIdempotency: "atomic-idempotent-v1" },
    };
  }

  /** Throws only where the configuration is incomplete. A session that is new to the engine gets what the host has stored of it. */
  async bootstrap(params: SessionParams): Promise<{ bootstrapped: boolean; importedMessages?: number; reason?: string }> {
    this.#last = "bootstrap";
    this.#turn.assembled = false;
    this.#check();
    const session = sessionOf(params);
    const state = this.shared.state(session);
    try {
      const fields = { session, ...this.#settings(params) };
      let answer = await this.#call("bootstrap", fields, params) as BootstrapAnswer;
      // A session that the engine holds is brought up to date from what assemble is handed: the rows as stored differ from that where the host merges or drops some.
      if (!state.bootstrapped && answer.known === 0) {
        const history = await this.#history(params);
        if (history !== undefined && history.length > 0) answer = await this.#call("bootstrap", { ...fields, transcript: { messages: history } }, params) as BootstrapAnswer;
      }
      state.bootstrapped = true;
      return compacted({ bootstrapped: answer.bootstrapped === true, importedMessages: answer.imported, reason: answer.reason });
    } catch (error) {
      this.shared.warn("bootstrap", error);
      return { bootstrapped: false, reason: textOf(error) };
    }
  }

  /** Never throws: whatever goes wrong, the model sees the messages that the host has. */
  async assemble(params: AssembleParams): Promise<Awaited<ReturnType<ContextEngine["assemble"]>>> {
    try {
      this.#check();
      return await assemble(this.shared, this.#turn, params);
    } catch (error) {
      this.shared.warn("assemble", error);
      return { messages: params.messages, estimatedTokens: 0 };
    } finally {
      this.#turn.assembled = true;
    }
  }

  /** Throws when the turn is not stored: the host then keeps it and calls again. */
  async commitTurn(params: CommitTurnParams): Promise<{ status: "committed" | "duplicate" }> {
    this.#check();
    const answer = await this.#call("commitTurn", {
      session: sessionOf(params),
      advancementKey: params.advancementKey,
      messages: params.messages.filter(isConversation),
      ...heartbeat(params),
      ...this.#settings(params),
    }, params, this.shared.settings.timeouts.commit) as { status?: string };
    this.#last = "turn";
    if (answer.status !== "committed" && answer.status !== "duplicate") throw new Error(`${PACKAGE}: commitTurn: the sidecar did not say that the turn is stored`);
    return { status: answer.status };
  }

  async compact(params: CompactParams): Promise<CompactResult> {
    const session = sessionOf(params);
    const { budget } = this.shared.state(session);
    budget.demanded(params);
    let delegated: CompactResult | undefined;
    try {
      this.#check();
      const answer = await this.shared.connection.call("compact", { session, ...compactionOf(params, budget.now()) }, {
        timeoutMs: this.shared.settings.timeouts.compact,
        signal: params.abortSignal,
        host: hostSide({ sdk: this.shared.sdk, failed: this.#failed, context: params.runtimeContext, compaction: params, delegated: (result) => { delegated = result; } }),
      }) as { ok?: boolean; compacted?: boolean; reason?: string; summary?: string; tokensBefore?: number; tokensAfter?: number };
      this.#last = "compaction";
      if (delegated) return delegated;
      return compacted<CompactResult>({
        ok: answer.ok === true,
        compacted: answer.compacted === true,
        reason: answer.reason,
        result: compacted({ summary: answer.summary, tokensBefore: answer.tokensBefore ?? 0, tokensAfter: answer.tokensAfter }),
      });
    } catch (error) {
      if (params.abortSignal?.aborted) throw error;
      if (delegated) return delegated; // the runtime did it, whatever came afterwards
      this.shared.warn("compact", error);
      return { ok: false, compacted: false, reason: textOf(error) };
    }
  }

  /** Compacts ahead of need, off the reply path. The host's transcript is never rewritten. */
  async maintain(params: SessionParams): Promise<Awaited<ReturnType<ContextEngine["maintain"]>>> {
    const reason = params.runtimeContext?.allowDeferredCompactionExecution === true ? "turn" : this.#last;
    // In the foreground the user is waiting.
    if (reason !== "turn") return { ...noRewrite, reason: "nothing to do" };
    const session = sessionOf(params);
    const budget = this.shared.state(session).budget.now();
    try {
      const answer = await this.#call("maintain", { session, reason, ...(budget === undefined ? {} : { tokenBudget: budget }) }, params, this.shared.settings.timeouts.maintain);
      return { ...noRewrite, reason: (answer as { reason?: string }).reason ?? "done" };
    } catch (error) {
      if (params.abortSignal?.aborted) throw error;
      this.shared.warn("maintain", error);
      return { ...noRewrite, reason: textOf(error) };
    }
  }

  async prepareSubagentSpawn(params: SpawnParams): Promise<{ rollback: () => Promise<void> } | undefined> {
    try {
      const ttl = params.ttlMs;
      const answer = await this.#call("prepareSubagentSpawn", compacted({
        parent: sessionOfKey(params.parentSessionKey),
        child: sessionOfKey(params.childSessionKey),
        contextMode: params.contextMode === "fork" || params.contextMode === "isolated" ? params.contextMode : undefined,
        ttlMs: typeof ttl === "number" && ttl > 0 ? Math.floor(ttl) : undefined,
      })) as { spawnId?: string };
      return { rollback: () => this.#rollback(answer.spawnId) };
    } catch (error) {
      // A throw would take the subagent away; without preparation it only knows less.
      this.shared.warn("prepareSubagentSpawn", error);
      return undefined;
    }
  }

  async #rollback(spawnId: string | undefined): Promise<void> {
    if (spawnId === undefined) return;
    try {
      await this.#call("rollbackSubagentSpawn", { spawnId });
    } catch (error) {
      this.shared.warn("rollbackSubagentSpawn", error);
    }
  }

  async onSubagentEnded(params: { childSessionKey: string; reason: string }): Promise<void> {
    try {
      await this.#call("onSubagentEnded", { child: sessionOfKey(params.childSessionKey), reason: params.reason });
    } catch (error) {
      this.shared.warn("onSubagentEnded", error);
    }
  }

  // The three that follow are for hosts that do not commit turns. What they miss is taken up from the messages that assemble is handed.

  async afterTurn(params: AfterTurnParams): Promise<void> {
    const turn = params.messages.slice(params.prePromptMessageCount).filter(isConversation);
    try {
      if (turn.length > 0) await this.#call("afterTurn", { session: sessionOf(params), messages: turn, ...heartbeat(params) }, params, this.shared.settings.timeouts.commit);
      this.#last = "turn";
    } catch (error) {
      this.shared.warn("afterTurn", error);
    }
  }

  async ingestBatch(params: SessionParams & { messages: HostMessage[]; isHeartbeat?: boolean }): Promise<{ ingestedCount: number }> {
    try {
      const answer = await this.#call("ingestBatch", { session: sessionOf(params), messages: params.messages, ...heartbeat(params) }, params);
      this.#last = "turn";
      return { ingestedCount: (answer as { ingested?: number }).ingested ?? 0 };
    } catch (error) {
      this.shared.warn("ingestBatch", error);
      return { ingestedCount: 0 };
    }
  }

  async ingest(params: SessionParams & { message: HostMessage; isHeartbeat?: boolean }): Promise<{ ingested: boolean }> {
    try {
      const answer = await this.#call("ingest", { session: sessionOf(params), message: params.message, ...heartbeat(params) }, params);
      this.#last = "turn";
      return { ingested: ((answer as { ingested?: number }).ingested ?? 0) > 0 };
    } catch (error) {
      this.shared.warn("ingest", error);
      return { ingested: false };
    }
  }

  /** The sidecar stays: it belongs to the plugin, not to the turn. */
  async dispose(): Promise<void> {
    // nothing is held
  }

  readonly #failed = (what: string, error: unknown): void => { this.shared.warn(what, error); };

  #check(): void {
    if (lacksCredentials(this.shared.settings)) throw new Error(MISSING_CREDENTIALS);
  }

  async #history(params: SessionParams): Promise<HostMessage[] | undefined> {
    try {
      return await storedHistory(await this.shared.sdk(), sessionOf(params), params);
    } catch {
      return undefined; // the reader's errors speak of the host's storage; assemble gets the messages anyway
    }
  }

  #settings(params: SessionParams): object {
    const settings = settingsOf(params.runtimeSettings, params.runtimeContext);
    return settings === undefined ? {} : { settings };
  }

  #call(method: string, fields: Readonly<Record<string, unknown>>, params?: SessionParams, timeoutMs = this.shared.settings.timeouts.call): Promise<unknown> {
    const options: CallOptions = { timeoutMs, signal: params?.abortSignal, host: hostSide({ sdk: this.shared.sdk, failed: this.#failed, context: params?.runtimeContext }) };
    return this.shared.connection.call(method, fields, options);
  }
}

function heartbeat(params: { isHeartbeat?: boolean }): object {
  return params.isHeartbeat === true ? { heartbeat: true } : {};
}
