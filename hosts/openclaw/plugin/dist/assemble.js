// One assemble: the list goes out as count, digest and tail, and comes back as references to it.
import { Code, ProtocolError } from "./errors.js";
import { PACKAGE } from "./names.js";
import { printOf } from "./prints.js";
import { forCodex, projectionOf } from "./projection.js";
import { NotShown, expand } from "./transcript.js";
import { asHost, weigh, weighText } from "./weigh.js";
import { compacted, memoryOf, scopeOf, sessionOf, settingsOf } from "./whitelist.js";
/** Looks at a call, once, before anybody is asked. */
export async function grantOf(shared, turn, params) {
    const state = shared.state(sessionOf(params));
    const loop = turn.assembled && !forCodex(params) && (params.runtimeSettings?.limits?.maxOutputTokens ?? null) === null;
    if (!loop)
        turn.sections = memorySections(await shared.sdk(), params);
    const said = params.tokenBudget ?? params.runtimeSettings?.limits?.promptTokenBudget ?? state.budget.now();
    const granted = said === undefined || said < 1 ? undefined : Math.floor(said);
    if (granted === undefined)
        return { loop, granted, budget: undefined };
    return { loop, granted, budget: loop ? state.budget.loop(granted, params) : state.budget.grant(granted, params.model, params.runtimeSettings?.limits?.maxOutputTokens) };
}
/** The newest messages that fit: what the model sees while the engine cannot be asked. */
export function withoutEngine(shared, turn, params, { loop, granted, budget }) {
    const state = shared.state(sessionOf(params));
    const { messages } = params;
    const most = loop && granted !== undefined ? state.budget.inLoop(granted, params) : budget;
    if (most === undefined)
        return { messages, estimatedTokens: 0 };
    const addition = turn.sections.join("\n\n");
    const shown = state.cut.newest(messages, Math.max(0, most - weighText(addition)));
    const estimatedTokens = shown.reduce((sum, message) => sum + weigh(message), weighText(addition));
    state.budget.spent(estimatedTokens);
    return compacted({
        messages: shown,
        estimatedTokens,
        systemPromptAddition: addition === "" ? undefined : addition,
        contextProjection: projectionOf(params, shared.settings, state.epoch),
    });
}
/** Asks the sidecar for the next prompt. Throws when there is none; the caller then goes on with what it has. */
export async function assemble(shared, turn, params, { loop, granted, budget }) {
    const session = sessionOf(params);
    const state = shared.state(session);
    const { messages } = params;
    if (budget === undefined)
        throw new Error(`${PACKAGE}: the host gave no token budget`);
    const prints = state.memory.prints(messages, loop);
    const fields = compacted({
        tokenBudget: budget,
        prompt: typeof params.prompt === "string" && params.prompt !== "" ? params.prompt : undefined,
        call: loop ? "loop" : "prompt",
        memory: memoryOf(params, turn.sections),
        // The engine takes what is missing to the window for what the host appends: room for an answer is not that.
        settings: settingsOf(params.runtimeSettings, params.runtimeContext, loop, budget - (granted ?? budget)),
        transcriptScope: scopeOf(params),
        references: true,
    });
    const end = Date.now() + shared.settings.timeouts.assemble;
    let plan = state.memory.plan(messages, prints);
    for (let attempt = 1;; attempt++) {
        const { transcript } = plan;
        try {
            const answer = await shared.call(session, "assemble", { session, transcript, ...fields }, { timeoutMs: Math.max(1, end - Date.now()), signal: params.abortSignal });
            // The engine's own fallback is the whole transcript.
            if (typeof answer.degraded === "string" && answer.degraded !== "")
                throw new Error(`the engine is degraded: ${answer.degraded}`);
            const list = expand(answer.items, messages, plan);
            state.memory.learn(plan.prints, transcript.digest, loop);
            learnOutput(state.memory, answer, list, prints);
            shared.spare(state);
            if (answer.projectionEpoch !== undefined)
                state.epoch = answer.projectionEpoch;
            report(shared, answer);
            state.budget.spent(answer.estimatedTokens ?? 0, list.messages.reduce((sum, message) => sum + asHost(message), 0));
            return compacted({
                messages: list.messages,
                estimatedTokens: answer.estimatedTokens ?? 0,
                systemPromptAddition: answer.systemPromptAddition === "" ? undefined : answer.systemPromptAddition,
                promptAuthority: answer.promptAuthority,
                contextProjection: projectionOf(params, shared.settings, state.epoch),
            });
        }
        catch (error) {
            const needed = error instanceof ProtocolError && error.code === Code.needTranscript;
            if (transcript.skipped === undefined || !(needed || error instanceof NotShown))
                throw error;
            // A longer tail first, where the sidecar knows one; then everything.
            if (needed && attempt === 1)
                state.memory.refused(error.data["known"], transcript);
            else
                state.memory.forget();
            plan = state.memory.plan(messages, prints);
        }
    }
}
/** Remembers the result as a list of its own: in a tool loop the host hands it back. */
function learnOutput(memory, answer, { messages, places }, prints) {
    const { count, digest } = answer.output ?? {};
    if (count !== messages.length || typeof digest !== "string")
        return;
    memory.learn(messages.map((message, i) => prints[places[i] ?? -1] ?? printOf(message)), digest, true);
}
function report(shared, answer) {
    if (Array.isArray(answer.warnings))
        for (const warning of answer.warnings)
            shared.warn("assemble", new Error(String(warning)));
}
function memorySections(sdk, params) {
    try {
        const section = sdk.buildMemorySystemPromptAddition?.(compacted({
            availableTools: params.availableTools ?? new Set(),
            citationsMode: params.citationsMode,
            agentSessionKey: params.sessionKey,
        }));
        return section === undefined || section === "" ? [] : [section];
    }
    catch {
        return []; // a host without memory
    }
}
