// The members of a context engine, as the host calls them. Every one is a translation: the decisions are the sidecar's.
import { assemble } from "./assemble.js";
import { hostSide } from "./callbacks.js";
import { lacksCredentials } from "./config.js";
import { textOf } from "./errors.js";
import { isConversation, storedHistory } from "./history.js";
import { MISSING_CREDENTIALS, PACKAGE, VERSION } from "./names.js";
import { compacted, compactionOf, sessionOf, sessionOfKey, settingsOf } from "./whitelist.js";
const noRewrite = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
/** Makes the engine of one logical turn. */
export function newEngine(shared, id, ownsCompaction) {
    return new Engine(shared, id, ownsCompaction);
}
class Engine {
    shared;
    info;
    #turn = { assembled: false, sections: [] };
    /** What happened last: the host does not say what a maintenance is for. */
    #last = "nothing";
    constructor(shared, id, ownsCompaction) {
        this.shared = shared;
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
    async bootstrap(params) {
        this.#last = "bootstrap";
        this.#turn.assembled = false;
        this.#check();
        const session = sessionOf(params);
        const state = this.shared.state(session);
        try {
            const fields = { session, ...this.#settings(params) };
            let answer = await this.#call("bootstrap", fields, params);
            // A session that the engine holds is brought up to date from what assemble is handed: the rows as stored differ from that where the host merges or drops some.
            if (!state.bootstrapped && answer.known === 0) {
                const history = await this.#history(params);
                if (history !== undefined && history.length > 0)
                    answer = await this.#call("bootstrap", { ...fields, transcript: { messages: history } }, params);
            }
            state.bootstrapped = true;
            return compacted({ bootstrapped: answer.bootstrapped === true, importedMessages: answer.imported, reason: answer.reason });
        }
        catch (error) {
            this.shared.warn("bootstrap", error);
            return { bootstrapped: false, reason: textOf(error) };
        }
    }
    /** Never throws: whatever goes wrong, the model sees the messages that the host has. */
    async assemble(params) {
        try {
            this.#check();
            return await assemble(this.shared, this.#turn, params);
        }
        catch (error) {
            this.shared.warn("assemble", error);
            return { messages: params.messages, estimatedTokens: 0 };
        }
        finally {
            this.#turn.assembled = true;
        }
    }
    /** Throws when the turn is not stored: the host then keeps it and calls again. */
    async commitTurn(params) {
        this.#check();
        const answer = await this.#call("commitTurn", {
            session: sessionOf(params),
            advancementKey: params.advancementKey,
            messages: params.messages.filter(isConversation),
            ...heartbeat(params),
            ...this.#settings(params),
        }, params, this.shared.settings.timeouts.commit);
        this.#last = "turn";
        if (answer.status !== "committed" && answer.status !== "duplicate")
            throw new Error(`${PACKAGE}: commitTurn: the sidecar did not say that the turn is stored`);
        return { status: answer.status };
    }
    async compact(params) {
        const session = sessionOf(params);
        const { budget } = this.shared.state(session);
        budget.demanded(params);
        let delegated;
        try {
            this.#check();
            const answer = await this.shared.connection.call("compact", { session, ...compactionOf(params, budget.now()) }, {
                timeoutMs: this.shared.settings.timeouts.compact,
                signal: params.abortSignal,
                host: hostSide({ sdk: this.shared.sdk, failed: this.#failed, context: params.runtimeContext, compaction: params, delegated: (result) => { delegated = result; } }),
            });
            this.#last = "compaction";
            if (delegated)
                return delegated;
            return compacted({
                ok: answer.ok === true,
                compacted: answer.compacted === true,
                reason: answer.reason,
                result: compacted({ summary: answer.summary, tokensBefore: answer.tokensBefore ?? 0, tokensAfter: answer.tokensAfter }),
            });
        }
        catch (error) {
            if (params.abortSignal?.aborted)
                throw error;
            if (delegated)
                return delegated; // the runtime did it, whatever came afterwards
            this.shared.warn("compact", error);
            return { ok: false, compacted: false, reason: textOf(error) };
        }
    }
    /** Compacts ahead of need, off the reply path. The host's transcript is never rewritten. */
    async maintain(params) {
        const reason = params.runtimeContext?.allowDeferredCompactionExecution === true ? "turn" : this.#last;
        // In the foreground the user is waiting.
        if (reason !== "turn")
            return { ...noRewrite, reason: "nothing to do" };
        const session = sessionOf(params);
        const budget = this.shared.state(session).budget.now();
        try {
            const answer = await this.#call("maintain", { session, reason, ...(budget === undefined ? {} : { tokenBudget: budget }) }, params, this.shared.settings.timeouts.maintain);
            return { ...noRewrite, reason: answer.reason ?? "done" };
        }
        catch (error) {
            if (params.abortSignal?.aborted)
                throw error;
            this.shared.warn("maintain", error);
            return { ...noRewrite, reason: textOf(error) };
        }
    }
    async prepareSubagentSpawn(params) {
        try {
            const ttl = params.ttlMs;
            const answer = await this.#call("prepareSubagentSpawn", compacted({
                parent: sessionOfKey(params.parentSessionKey),
                child: sessionOfKey(params.childSessionKey),
                contextMode: params.contextMode === "fork" || params.contextMode === "isolated" ? params.contextMode : undefined,
                ttlMs: typeof ttl === "number" && ttl > 0 ? Math.floor(ttl) : undefined,
            }));
            return { rollback: () => this.#rollback(answer.spawnId) };
        }
        catch (error) {
            // A throw would take the subagent away; without preparation it only knows less.
            this.shared.warn("prepareSubagentSpawn", error);
            return undefined;
        }
    }
    async #rollback(spawnId) {
        if (spawnId === undefined)
            return;
        try {
            await this.#call("rollbackSubagentSpawn", { spawnId });
        }
        catch (error) {
            this.shared.warn("rollbackSubagentSpawn", error);
        }
    }
    async onSubagentEnded(params) {
        try {
            await this.#call("onSubagentEnded", { child: sessionOfKey(params.childSessionKey), reason: params.reason });
        }
        catch (error) {
            this.shared.warn("onSubagentEnded", error);
        }
    }
    // The three that follow are for hosts that do not commit turns. What they miss is taken up from the messages that assemble is handed.
    async afterTurn(params) {
        const turn = params.messages.slice(params.prePromptMessageCount).filter(isConversation);
        try {
            if (turn.length > 0)
                await this.#call("afterTurn", { session: sessionOf(params), messages: turn, ...heartbeat(params) }, params, this.shared.settings.timeouts.commit);
            this.#last = "turn";
        }
        catch (error) {
            this.shared.warn("afterTurn", error);
        }
    }
    async ingestBatch(params) {
        try {
            const answer = await this.#call("ingestBatch", { session: sessionOf(params), messages: params.messages, ...heartbeat(params) }, params);
            this.#last = "turn";
            return { ingestedCount: answer.ingested ?? 0 };
        }
        catch (error) {
            this.shared.warn("ingestBatch", error);
            return { ingestedCount: 0 };
        }
    }
    async ingest(params) {
        try {
            const answer = await this.#call("ingest", { session: sessionOf(params), message: params.message, ...heartbeat(params) }, params);
            this.#last = "turn";
            return { ingested: (answer.ingested ?? 0) > 0 };
        }
        catch (error) {
            this.shared.warn("ingest", error);
            return { ingested: false };
        }
    }
    /** The sidecar stays: it belongs to the plugin, not to the turn. */
    async dispose() {
        // nothing is held
    }
    #failed = (what, error) => { this.shared.warn(what, error); };
    #check() {
        if (lacksCredentials(this.shared.settings))
            throw new Error(MISSING_CREDENTIALS);
    }
    async #history(params) {
        try {
            return await storedHistory(await this.shared.sdk(), sessionOf(params), params);
        }
        catch {
            return undefined; // the reader's errors speak of the host's storage; assemble gets the messages anyway
        }
    }
    #settings(params) {
        const settings = settingsOf(params.runtimeSettings, params.runtimeContext);
        return settings === undefined ? {} : { settings };
    }
    #call(method, fields, params, timeoutMs = this.shared.settings.timeouts.call) {
        const options = { timeoutMs, signal: params?.abortSignal, host: hostSide({ sdk: this.shared.sdk, failed: this.#failed, context: params?.runtimeContext }) };
        return this.shared.connection.call(method, fields, options);
    }
}
function heartbeat(params) {
    return params.isHeartbeat === true ? { heartbeat: true } : {};
}
