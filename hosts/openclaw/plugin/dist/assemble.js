// One assemble: the list goes out as count, digest and tail, and comes back as references to it.
import { Code, ProtocolError } from "./errors.js";
import { PACKAGE } from "./names.js";
import { Hasher, expand } from "./transcript.js";
import { compacted, memoryOf, sessionOf, settingsOf } from "./whitelist.js";
/** Asks the sidecar for the next prompt. Throws when there is none; the caller then goes on with what it has. */
export async function assemble(shared, turn, params) {
    const session = sessionOf(params);
    const state = shared.state(session);
    const { messages } = params;
    // In the tool loop the host hands back what it was given, and knows no limit of the output.
    const loop = turn.assembled && (params.runtimeSettings?.limits?.maxOutputTokens ?? null) === null;
    if (!loop)
        turn.sections = memorySections(await shared.sdk(), params);
    const granted = params.tokenBudget ?? params.runtimeSettings?.limits?.promptTokenBudget ?? state.budget.now();
    if (granted === undefined || granted < 1)
        throw new Error(`${PACKAGE}: the host gave no token budget`);
    // The loop's budget is taken as it is: the engine knows the turn's own.
    const budget = loop ? Math.floor(granted) : state.budget.grant(granted, params.model);
    const hasher = new Hasher(messages);
    const fields = compacted({
        tokenBudget: budget,
        prompt: typeof params.prompt === "string" && params.prompt !== "" ? params.prompt : undefined,
        call: loop ? "loop" : "prompt",
        memory: memoryOf(params, turn.sections),
        settings: settingsOf(params.runtimeSettings, params.runtimeContext, loop),
        references: true,
    });
    const end = Date.now() + shared.settings.timeouts.assemble;
    let transcript = state.memory.plan(messages, hasher);
    for (let attempt = 1;; attempt++) {
        try {
            const answer = await shared.connection.call("assemble", { session, transcript, ...fields }, { timeoutMs: Math.max(1, end - Date.now()), signal: params.abortSignal });
            const list = expand(answer.items, messages);
            state.memory.learn(messages.length, transcript.digest);
            learnOutput(state.memory, answer, list, hasher.texts(messages));
            report(shared, answer);
            state.budget.spent(answer.estimatedTokens ?? 0);
            return compacted({
                messages: list,
                estimatedTokens: answer.estimatedTokens ?? 0,
                systemPromptAddition: answer.systemPromptAddition === "" ? undefined : answer.systemPromptAddition,
                promptAuthority: answer.promptAuthority,
            });
        }
        catch (error) {
            if (!(error instanceof ProtocolError) || error.code !== Code.needTranscript || transcript.skipped === undefined)
                throw error;
            transcript = more(state.memory, params, hasher, error, transcript, attempt);
        }
    }
}
/** What to send after a refusal: a longer tail, and after the second refusal everything. */
function more(memory, params, hasher, error, refused, attempt) {
    if (attempt === 1)
        return memory.replan(params.messages, hasher, error.data["known"], refused);
    memory.forget();
    return memory.plan(params.messages, hasher);
}
/** Remembers the result as a list of its own: in a tool loop the host hands it back. */
function learnOutput(memory, answer, list, texts) {
    const { count, digest } = answer.output ?? {};
    if (count !== list.length || typeof digest !== "string" || list.length === 0)
        return;
    const hash = new Hasher(list, texts).at([list.length]).get(list.length);
    if (hash !== undefined)
        memory.learn(list.length, hash, digest);
}
function report(shared, answer) {
    if (typeof answer.degraded === "string" && answer.degraded !== "")
        shared.warn("assemble", new Error(`the engine is degraded: ${answer.degraded}`));
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
