const text = (value) => (typeof value === "string" && value !== "" ? value : undefined);
const tokens = (value) => (typeof value === "number" && Number.isFinite(value) && value >= 1 ? Math.floor(value) : undefined);
/** Leaves out what is undefined: the protocol has no nulls. */
export function compacted(fields) {
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
/** The agent that a session key names: agent:<id>:... */
export function agentOf(sessionKey) {
    const [kind, agent] = sessionKey?.split(":") ?? [];
    return kind === "agent" ? text(agent) : undefined;
}
/**
 * The session of a call. The key names it where there is one: the host gives no id where a subagent is prepared, and keeps the id over a reset, which is
 * seen from the messages.
 */
export function sessionOf(params) {
    const key = text(params.sessionKey) ?? text(params.sessionTarget?.sessionKey);
    const agent = text(params.agentId) ?? text(params.sessionTarget?.agentId) ?? agentOf(key) ?? "main";
    return { agent, session: key ?? params.sessionId };
}
export function sessionOfKey(sessionKey) {
    return { agent: agentOf(sessionKey) ?? "main", session: sessionKey };
}
/** What the host says about the model run. In a tool loop its prompt budget is the model's whole window, of which kept (negative) is what the budget leaves for an answer. */
export function settingsOf(runtime, context, loop = false, kept = 0) {
    const budget = tokens(runtime?.limits?.promptTokenBudget);
    const settings = compacted({
        provider: text(runtime?.model?.provider) ?? text(context?.provider),
        model: text(runtime?.model?.resolved) ?? text(runtime?.model?.requested) ?? text(context?.modelId),
        contextWindow: loop ? tokens(budget === undefined ? undefined : budget + kept) : tokens(context?.modelContextWindow),
        maxOutputTokens: tokens(runtime?.limits?.maxOutputTokens),
        promptTokenBudget: loop ? undefined : budget,
        mode: text(runtime?.runtime?.mode),
        degradedReason: text(runtime?.diagnostics?.degradedReason),
    });
    return Object.keys(settings).length > 0 ? settings : undefined;
}
/** Names of tools and the citation mode, for the engine's addition to the system prompt. */
export function memoryOf(params, sections) {
    const names = params.availableTools instanceof Set ? [...params.availableTools].filter((name) => typeof name === "string").sort() : [];
    const memory = compacted({
        availableTools: names.length > 0 ? names : undefined,
        citationMode: ["auto", "on", "off"].includes(params.citationsMode ?? "") ? params.citationsMode : undefined,
        sections: sections.length > 0 ? sections : undefined,
    });
    return Object.keys(memory).length > 0 ? memory : undefined;
}
/** The fields of a compaction; budget is the smaller of the host's and the one that the session's prompts have. */
export function compactionOf(params, promptBudget) {
    const host = tokens(params.tokenBudget) ?? tokens(params.runtimeContext?.tokenBudget);
    const budget = host !== undefined && promptBudget !== undefined ? Math.min(host, promptBudget) : (host ?? promptBudget);
    return compacted({
        tokenBudget: budget,
        currentTokenCount: tokens(params.currentTokenCount) ?? tokens(params.runtimeContext?.currentTokenCount),
        compactionTarget: params.compactionTarget === "budget" || params.compactionTarget === "threshold" ? params.compactionTarget : undefined,
        force: params.force === true ? true : undefined,
        customInstructions: text(params.customInstructions),
        trigger: text(params.runtimeContext?.trigger),
    });
}
