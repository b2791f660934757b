// The members of a context engine, as the host calls them. Every one is a translation: the decisions are the sidecar's.
import { randomUUID } from "node:crypto";
import { assemble, grantOf, withoutEngine } from "./assemble.js";
import { hostSide } from "./callbacks.js";
import { resultOf } from "./compaction.js";
import { lacksCredentials } from "./config.js";
import { OpenBrainConfigError, Unavailable, misconfigured, textOf } from "./errors.js";
import { isConversation, storedHistory } from "./history.js";
import { VERSION } from "./names.js";
import { compacted, compactionOf, scopeOf, sessionOf, sessionOfKey, settingsOf, spawnOf } from "./whitelist.js";
/** How long a turn waits until what is owed is stored. The rest is stored beside it. */
const settleMs = 10_000;
const noRewrite = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
/** Makes the engine of one logical turn. */
export function newEngine(shared, id, ownsCompaction, context) {
    return new Engine(shared, id, ownsCompaction, context);
}
class Engine {
    shared;
    context;
    info;
    #turn = { assembled: false, sections: [] };
    /** The bootstrap that no turn waits for. */
    #booting;
    /** What happened last: the host does not say what a maintenance is for. */
    #last = "nothing";
    /** context is what the host's factory was handed: it does not say whose engine it is, the first call does. */
    constructor(shared, id, ownsCompaction, context) {
        this.shared = shared;
        this.context = context;
        this.info = {
            id,
            name: "OpenBrain context engine",
            version: VERSION,
            ownsCompaction,
            turnMaintenanceMode: "background",
            acceptedHostParams: ["sessionKey", "prompt", "runtimeSettings", "sessionTarget", "transcriptScope", "runtimeContext", "abortSignal"],
            transcriptSemantics: { currentTurnFence: "before-current-turn-entry-v1", turnAdvancementIdempotency: "atomic-idempotent-v1" },
        };
    }
    /** Throws where the configuration is incomplete, and where failure is strict. A session that is new to the engine gets what the host has stored of it. */
    async bootstrap(params) {
        this.#last = "bootstrap";
        this.#turn.assembled = false;
        this.#check();
        const session = this.#session(params);
        const state = this.shared.state(session);
        if (!state.bootstrapped)
            return this.#boot(session, params);
        // The engine knows the session: the turn does not wait for its answer, which comes before that of what follows. What goes wrong is noted as ever.
        this.#booting = this.#boot(session, params).then(() => undefined, () => undefined);
        return { bootstrapped: true };
    }
    async #boot(session, params) {
        const state = this.shared.state(session);
        try {
            const fields = this.#run(params);
            let answer = await this.#call(session, "bootstrap", fields, params);
            // A session that the engine holds is brought up to date from what assemble is handed: the rows as stored differ from that where the host merges or drops some.
            if (!state.bootstrapped && answer.known === 0) {
                const history = await this.#history(params);
                if (history !== undefined && history.length > 0)
                    answer = await this.#call(session, "bootstrap", { ...fields, transcript: { messages: history } }, params);
            }
            state.bootstrapped = true;
            return compacted({ bootstrapped: answer.bootstrapped === true, importedMessages: answer.imported, reason: answer.reason });
        }
        catch (error) {
            this.shared.failed(session, "bootstrap", error);
            if (misconfigured(error))
                throw error;
            this.#strictly(error);
            return { bootstrapped: false, reason: textOf(error) };
        }
    }
    /** Throws only where failure is strict: else, whatever goes wrong, the model sees the newest messages that fit. */
    async assemble(params) {
        const session = this.#session(params);
        const grant = await grantOf(this.shared, this.#turn, params);
        try {
            this.#check();
            if (!grant.loop)
                await this.#settled(session);
            const result = await assemble(this.shared, this.#turn, params, grant);
            this.shared.works(session, "assemble");
            return result;
        }
        catch (error) {
            this.shared.failed(session, "assemble", error);
            this.#strictly(error);
            return withoutEngine(this.shared, this.#turn, params, grant);
        }
        finally {
            this.#turn.assembled = true;
        }
    }
    /**
     * Stores the turn, or keeps it until the engine can. Throws where the configuration is incomplete, where failure is strict, and where it cannot be kept either: the host
     * then keeps it and answers without the engine until it is stored.
     */
    async commitTurn(params) {
        this.#check();
        const session = this.#session(params);
        this.shared.state(session).budget.ended(params.messages);
        const turn = { session, advancementKey: params.advancementKey, messages: params.messages.filter(isConversation), ...heartbeat(params), ...this.#run(params) };
        try {
            await this.#settled(session);
            const status = await this.shared.commit(turn, this.#options(params, this.shared.settings.timeouts.commit));
            this.shared.works(session, "commitTurn");
            this.#last = "turn";
            return { status };
        }
        catch (error) {
            this.shared.failed(session, "commitTurn", error);
            if (misconfigured(error) || params.abortSignal?.aborted)
                throw error;
            this.#strictly(error);
            await this.#keep(turn, error);
            return { status: "committed" };
        }
    }
    /** Keeps a turn that could not be stored because of an error. */
    async #keep(turn, cause) {
        try {
            await this.shared.owed.keep(turn);
        }
        catch (error) {
            this.shared.warn("keeping a turn until it can be stored", error);
            throw cause;
        }
    }
    /** Waits until what is owed of a session is stored, so that turns are stored in their order. Throws where that cannot be done now. */
    async #settled(session) {
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => { reject(new Unavailable("it is still told what it missed")); }, settleMs);
        });
        try {
            await Promise.race([this.shared.settle(session), late]);
        }
        finally {
            clearTimeout(timer);
        }
    }
    /** Where the engine cannot compact, the host does, unless failure is strict. */
    async compact(params) {
        const session = this.#session(params);
        const { budget } = this.shared.state(session);
        const before = budget.demanded(params);
        let delegated;
        try {
            this.#check();
            const options = this.#options(params, this.shared.settings.timeouts.compact, { compaction: params, delegated: (result) => { delegated = result; } });
            const answer = await this.shared.call(session, "compact", { session, ...compactionOf(params, budget.now()), ...this.#run(params) }, options);
            this.#last = "compaction";
            if (delegated)
                return delegated;
            return resultOf(answer);
        }
        catch (error) {
            if (params.abortSignal?.aborted)
                throw error;
            if (delegated)
                return delegated; // the runtime did it, whatever came afterwards
            this.shared.failed(session, "compact", error);
            this.#strictly(error);
            return this.#compactedByHost(params, before, error);
        }
    }
    /** The host's own compaction. Where that fails as well, the turn goes on with less: what it shows is cut to the budget anyway. before is what the prompt cost. */
    async #compactedByHost(params, before, cause) {
        let result = { ok: false, compacted: false, reason: textOf(cause) };
        try {
            const { delegateCompactionToRuntime } = await this.shared.sdk();
            if (delegateCompactionToRuntime)
                result = await delegateCompactionToRuntime(params);
        }
        catch (error) {
            if (params.abortSignal?.aborted)
                throw error;
            this.shared.warn("compact", error);
        }
        const now = this.shared.state(this.#session(params)).budget.now();
        if (result.compacted || before === undefined || now === undefined)
            return result;
        // Words that the host takes for good news; with others it fails the turn.
        if (params.runtimeContext?.trigger === "budget")
            return { ok: true, compacted: false, reason: "already under target" };
        return now < before ? { ok: true, compacted: true, result: { tokensBefore: before, tokensAfter: now } } : result;
    }
    /** Compacts ahead of need, off the reply path. The host's transcript is never rewritten. */
    async maintain(params) {
        const reason = params.runtimeContext?.allowDeferredCompactionExecution === true ? "turn" : this.#last;
        // In the foreground the user is waiting.
        if (reason !== "turn")
            return { ...noRewrite, reason: "nothing to do" };
        const session = this.#session(params);
        const budget = this.shared.state(session).budget.now();
        try {
            const answer = await this.#call(session, "maintain", { reason, ...(budget === undefined ? {} : { tokenBudget: budget }), ...this.#run(params) }, params, this.shared.settings.timeouts.maintain);
            return { ...noRewrite, reason: answer.reason ?? "done" };
        }
        catch (error) {
            if (params.abortSignal?.aborted)
                throw error;
            this.shared.failed(session, "maintain", error);
            return { ...noRewrite, reason: textOf(error) };
        }
    }
    async prepareSubagentSpawn(params) {
        const parent = sessionOfKey(params.parentSessionKey);
        try {
            const answer = await this.#ask(parent, "prepareSubagentSpawn", { parent, child: sessionOfKey(params.childSessionKey), ...spawnOf(params) });
            return { rollback: () => this.#rollback(parent, answer.spawnId) };
        }
        catch (error) {
            // A throw takes the subagent away; without preparation it only knows less.
            this.shared.failed(parent, "prepareSubagentSpawn", error);
            this.#strictly(error);
            return undefined;
        }
    }
    async #rollback(parent, spawnId) {
        if (spawnId === undefined)
            return;
        try {
            await this.#ask(parent, "rollbackSubagentSpawn", { spawnId });
        }
        catch (error) {
            this.shared.failed(parent, "rollbackSubagentSpawn", error);
        }
    }
    async onSubagentEnded(params) {
        const child = sessionOfKey(params.childSessionKey);
        try {
            await this.#ask(child, "onSubagentEnded", { child, reason: params.reason });
        }
        catch (error) {
            this.shared.failed(child, "onSubagentEnded", error);
        }
    }
    // The three that follow are for hosts that do not commit turns. What they miss is taken up from the messages that assemble is handed.
    async afterTurn(params) {
        const turn = params.messages.slice(params.prePromptMessageCount).filter(isConversation);
        try {
            if (turn.length > 0)
                await this.#call(this.#session(params), "afterTurn", { messages: turn, ...heartbeat(params), ...this.#run(params) }, params, this.shared.settings.timeouts.commit);
            this.#last = "turn";
        }
        catch (error) {
            this.shared.failed(this.#session(params), "afterTurn", error);
            this.#strictly(error);
        }
    }
    async ingestBatch(params) {
        try {
            const answer = await this.#call(this.#session(params), "ingestBatch", { messages: params.messages, ...heartbeat(params), idempotencyKey: randomUUID() }, params);
            this.#last = "turn";
            return { ingestedCount: answer.ingested ?? 0 };
        }
        catch (error) {
            this.shared.failed(this.#session(params), "ingestBatch", error);
            this.#strictly(error);
            return { ingestedCount: 0 };
        }
    }
    async ingest(params) {
        try {
            const answer = await this.#call(this.#session(params), "ingest", { message: params.message, ...heartbeat(params), idempotencyKey: randomUUID() }, params);
            this.#last = "turn";
            return { ingested: (answer.ingested ?? 0) > 0 };
        }
        catch (error) {
            this.shared.failed(this.#session(params), "ingest", error);
            this.#strictly(error);
            return { ingested: false };
        }
    }
    /** The sidecar stays: it belongs to the plugin, not to the turn. */
    async dispose() {
        await this.#booting;
    }
    #failed = (what, error) => { this.shared.warn(what, error); };
    /** Nothing stands in for the engine where failure is strict. Maintenance and the end of a subagent are left to the log: nobody waits for them. */
    #strictly(error) {
        if (this.shared.settings.failure === "strict")
            throw error;
    }
    #check() {
        if (lacksCredentials(this.shared.settings))
            throw new OpenBrainConfigError();
    }
    async #history(params) {
        try {
            return await storedHistory(await this.shared.sdk(), this.#session(params), params);
        }
        catch {
            return undefined; // the reader's errors speak of the host's storage; assemble gets the messages anyway
        }
    }
    #session(params) {
        const session = sessionOf(params);
        this.shared.connection.agents.made(this.context, session.agent);
        return session;
    }
    /** What the host says about the run that a call belongs to. */
    #run(params) {
        return compacted({ settings: settingsOf(params.runtimeSettings, params.runtimeContext), transcriptScope: scopeOf(params) });
    }
    /** Calls a method about a session. */
    #call(session, method, fields, params, timeoutMs = this.shared.settings.timeouts.call) {
        return this.#ask(session, method, { session, ...fields }, params, timeoutMs);
    }
    #ask(session, method, fields, params, timeoutMs = this.shared.settings.timeouts.call) {
        return this.shared.call(session, method, fields, this.#options(params, timeoutMs));
    }
    #options(params, timeoutMs, more = {}) {
        return { timeoutMs, signal: params?.abortSignal, host: hostSide({ sdk: this.shared.sdk, failed: this.#failed, context: params?.runtimeContext, ...more }) };
    }
}
function heartbeat(params) {
    return params.isHeartbeat === true ? { heartbeat: true } : {};
}
