// What crosses to the sidecar: the fields named here and no others. The host's calls also carry its whole configuration, keys, tokens and functions.
import type { AssembleParams, CompactParams, RuntimeContext, RuntimeSettings, SessionParams, SpawnParams, TranscriptScope } from "./host-types.js";

/** Whose conversation a call is about. */
export interface WireSession {
  agent: string;
  session: string;
}

/** What is known about the model run. */
export interface WireSettings {
  schemaVersion?: number;
  provider?: string;
  model?: string;
  modelFamily?: string;
  requestedModel?: string;
  resolvedModel?: string;
  contextWindow?: number;
  maxOutputTokens?: number;
  promptTokenBudget?: number;
  mode?: string;
  fallbackReason?: string;
  degradedReason?: string;
  host?: string;
  harnessId?: string;
  runtimeId?: string;
  contextEngineSelection?: object;
  executionHost?: object;
}

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
/** A name or code of the host's, as long as the sidecar takes one: what only informs must not cost the call. */
const word = (value: unknown, most = 1024): string | undefined => {
  const name = text(value);
  return name === undefined || Buffer.byteLength(name) > most || name.includes("\0") ? undefined : name;
};
const path = (value: unknown): string | undefined => word(value, 4096);
const tokens = (value: unknown): number | undefined => (typeof value === "number" && Number.isFinite(value) && value >= 1 ? Math.floor(value) : undefined);

/** Leaves out what is undefined: the protocol has no nulls. */
export function compacted<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** As compacted, and undefined where nothing is left. */
function known<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T | undefined {
  const left = compacted<T>(fields);
  return Object.keys(left).length > 0 ? left : undefined;
}

/** The agent that a session key names: agent:<id>:... */
export function agentOf(sessionKey: string | undefined): string | undefined {
  const [kind, agent] = sessionKey?.split(":") ?? [];
  return kind === "agent" ? text(agent) : undefined;
}

/**
 * The session of a call. The key names it where there is one: the host gives no id where a subagent is prepared, and keeps the id over a reset, which is
 * seen from the messages.
 */
export function sessionOf(params: SessionParams): WireSession {
  const key = text(params.sessionKey) ?? text(params.sessionTarget?.sessionKey);
  const agent = text(params.agentId) ?? text(params.sessionTarget?.agentId) ?? agentOf(key) ?? "main";
  return { agent, session: key ?? params.sessionId };
}

export function sessionOfKey(sessionKey: string): WireSession {
  return { agent: agentOf(sessionKey) ?? "main", session: sessionKey };
}

/** What the host says about the model run. In a tool loop its prompt budget is the model's whole window, of which kept (negative) is what the budget leaves for an answer. */
export function settingsOf(runtime: RuntimeSettings | undefined, context: RuntimeContext | undefined, loop = false, kept = 0): WireSettings | undefined {
  const budget = tokens(runtime?.limits?.promptTokenBudget);
  const [requested, resolved] = [word(runtime?.model?.requested), word(runtime?.model?.resolved)];
  return known<WireSettings>({
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
export function scopeOf({ transcriptScope: scope, sessionTarget: target }: SessionParams): TranscriptScope | undefined {
  const said = scope ?? { agentId: target?.agentId, sessionId: target?.sessionId, path: target?.storePath };
  return known<TranscriptScope>({ agentId: word(said.agentId), sessionId: word(said.sessionId), path: path(said.path) });
}

/** Names of tools and the citation mode, for the engine's addition to the system prompt. */
export function memoryOf(params: AssembleParams, sections: readonly string[]): object | undefined {
  const names = params.availableTools instanceof Set ? [...params.availableTools].filter((name) => typeof name === "string").sort() : [];
  return known<Record<string, unknown>>({
    availableTools: names.length > 0 ? names : undefined,
    citationMode: ["auto", "on", "off"].includes(params.citationsMode ?? "") ? params.citationsMode : undefined,
    sections: sections.length > 0 ? sections : undefined,
  });
}

/** The fields of a compaction; budget is the smaller of the host's and the one that the session's prompts have. */
export function compactionOf(params: CompactParams, promptBudget: number | undefined): Record<string, unknown> {
  const host = tokens(params.tokenBudget) ?? tokens(params.runtimeContext?.tokenBudget);
  const budget = host !== undefined && promptBudget !== undefined ? Math.min(host, promptBudget) : (host ?? promptBudget);
  return compacted<Record<string, unknown>>({
    tokenBudget: budget,
    currentTokenCount: tokens(params.currentTokenCount) ?? tokens(params.runtimeContext?.currentTokenCount),
    compactionTarget: params.compactionTarget === "budget" || params.compactionTarget === "threshold" ? params.compactionTarget : undefined,
    force: params.force === true ? true : undefined,
    customInstructions: text(params.customInstructions),
    trigger: text(params.runtimeContext?.trigger),
  });
}

/** What a preparation says besides the two sessions. */
export function spawnOf(params: SpawnParams): object {
  return compacted<Record<string, unknown>>({
    contextMode: params.contextMode === "fork" || params.contextMode === "isolated" ? params.contextMode : undefined,
    ttlMs: tokens(params.ttlMs),
    parentSessionId: word(params.parentSessionId),
    parentSessionFile: path(params.parentSessionFile),
    childSessionId: word(params.childSessionId),
    childSessionFile: path(params.childSessionFile),
  });
}
