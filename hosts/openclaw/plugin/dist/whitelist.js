const text = (value) => (typeof value === "string" && value !== "" ? value : undefined);
/** A name or code of the host's, as long as the sidecar takes one: what only informs must not cost the call. */
const word = (value, most = 1024) => {
    const name = text(value);
    return name === undefined || Buffer.byteLength(name) > most || name.includes("\0") ? undefined : name;
};
const path = (value) => word(value, 4096);
const tokens = (value) => (typeof value === "number" && Number.isFinite(value) && value >= 1 ? Math.floor(value) : undefined);
/** Leaves out what is undefined: the protocol has no nulls. */
export function compacted(fields) {
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
/** As compacted, and undefined where nothing is left. */
function known(fields) {
    const left = compacted(fields);
    return Object.keys(left).length > 0 ? left : undefined;
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
    const [requested, resolved] = [word(runtime?.model?.requested), word(runtime?.model?.resolved)];
    return known({
        schemaVersion: tokens(runtime?.schemaVersion),
        provider: word(runtime?.model?.provider) ?? word(context?.provider),
        model: resolved ?? requested ?? word(context?.modelId),
        modelFamily: word(runtime?.model?.family),
        requestedModel: requested,
        resolvedModel: resolved,
        contextWindow: loop ? tokens(budget === undefined ? undefined : budget + kept) : tokens(context?.modelContextWindow),
        maxOutputTokens: tokens(runtime?.limits?.maxOutputTokens),
        promptTokenBudget: loop ? undefined : budget,
        mode: word(runtime?.runtime?.mode),
        fallbackReason: word(runtime?.diagnostics?.fallbackReason),
        degradedReason: word(runtime?.diagnostics?.degradedReason),
        host: word(runtime?.runtime?.host),
        harnessId: word(runtime?.runtime?.harnessId),
        runtimeId: word(runtime?.runtime?.runtimeId),
        contextEngineSelection: known({ selectedId: word(runtime?.contextEngineSelection?.selectedId), source: word(runtime?.contextEngineSelection?.source) }),
        executionHost: known({ id: word(runtime?.executionHost?.id), label: word(runtime?.executionHost?.label) }),
    });
}
/** Where the host keeps the transcript of a call; hosts with session targets say it there. */
export function scopeOf({ transcriptScope: scope, sessionTarget: target }) {
    const said = scope ?? { agentId: target?.agentId, sessionId: target?.sessionId, path: target?.storePath };
    return known({ agentId: word(said.agentId), sessionId: word(said.sessionId), path: path(said.path) });
}
/** Names of tools and the citation mode, for the engine's addition to the system prompt. */
export function memoryOf(params, sections) {
    const names = params.availableTools instanceof Set ? [...params.availableTools].filter((name) => typeof name === "string").sort() : [];
    return known({
        availableTools: names.length > 0 ? names : undefined,
        citationMode: ["auto", "on", "off"].includes(params.citationsMode ?? "") ? params.citationsMode : undefined,
        sections: sections.length > 0 ? sections : undefined,
    });
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
/** What a preparation says besides the two sessions. */
export function spawnOf(params) {
    return compacted({
        contextMode: params.contextMode === "fork" || params.contextMode === "isolated" ? params.contextMode : undefined,
        ttlMs: tokens(params.ttlMs),
        parentSessionId: word(params.parentSessionId),
        parentSessionFile: path(params.parentSessionFile),
        childSessionId: word(params.childSessionId),
        childSessionFile: path(params.childSessionFile),
    });
}
