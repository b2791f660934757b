// One assemble: the list goes out as count, digest and tail, and comes back as references to it.
import { Code, ProtocolError } from "./errors.js";
import type { AssembleParams, AssembleResult } from "./host-types.js";
import { PACKAGE } from "./names.js";
import { printOf, type Print } from "./prints.js";
import { forCodex, projectionOf } from "./projection.js";
import type { Sdk } from "./sdk.js";
import type { Shared } from "./shared.js";
import { NotShown, expand, type Expanded, type Memory } from "./transcript.js";
import { asHost, weigh, weighText } from "./weigh.js";
import { compacted, memoryOf, scopeOf, sessionOf, settingsOf } from "./whitelist.js";

/** What one logical turn remembers between its calls. */
export interface Turn {
  /** The prompt of this attempt was assembled: what follows are calls of the tool loop. */
  assembled: boolean;
  /** The host's texts about its memory, as of the prompt's call. */
  sections: readonly string[];
}

interface Answer {
  items?: unknown;
  estimatedTokens?: number;
  systemPromptAddition?: string;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  projectionEpoch?: number;
  output?: { count?: unknown; digest?: unknown };
  warnings?: unknown;
  degraded?: unknown;
}

/** What a call of assemble is, and what its prompt may cost. */
export interface Grant {
  /** A call of the tool loop: the host hands back what it was given, and knows no limit of the output. */
  loop: boolean;
  /** As the host grants it, in tokens; undefined where it says nothing. */
  granted: number | undefined;
  /** What the engine may use. */
  budget: number | undefined;
}

/** Looks at a call, once, before anybody is asked. */
export async function grantOf(shared: Shared, turn: Turn, params: AssembleParams): Promise<Grant> {
  const state = shared.state(sessionOf(params));
  const loop = turn.assembled && !forCodex(params) && (params.runtimeSettings?.limits?.maxOutputTokens ?? null) === null;
  if (!loop) turn.sections = memorySections(await shared.sdk(), params);
  const said = params.tokenBudget ?? params.runtimeSettings?.limits?.promptTokenBudget ?? state.budget.now();
  const granted = said === undefined || said < 1 ? undefined : Math.floor(said);
  if (granted === undefined) return { loop, granted, budget: undefined };
  return { loop, granted, budget: loop ? state.budget.loop(granted, params) : state.budget.grant(granted, params.model, params.runtimeSettings?.limits?.maxOutputTokens) };
}

/** The newest messages that fit: what the model sees while the engine cannot be asked. */
export function withoutEngine(shared: Shared, turn: Turn, params: AssembleParams, { loop, granted, budget }: Grant): AssembleResult {
  const state = shared.state(sessionOf(params));
  const { messages } = params;
  const most = loop && granted !== undefined ? state.budget.inLoop(granted, params) : budget;
  if (most === undefined) return { messages, estimatedTokens: 0 };
  const addition = turn.sections.join("\n\n");
  const shown = state.cut.newest(messages, Math.max(0, most - weighText(addition)));
  const estimatedTokens = shown.reduce((sum, message) => sum + weigh(message), weighText(addition));
  state.budget.spent(estimatedTokens);
  return compacted<AssembleResult>({
    messages: shown,
    estimatedTokens,
    systemPromptAddition: addition === "" ? undefined : addition,
    contextProjection: projectionOf(params, shared.settings, state.epoch),
  });
}

/** Asks the sidecar for the next prompt. Throws when there is none; the caller then goes on with what it has. */
export async function assemble(shared: Shared, turn: Turn, params: AssembleParams, { loop, granted, budget }: Grant): Promise<AssembleResult> {
  const session = sessionOf(params);
  const state = shared.state(session);
  const { messages } = params;
  if (budget === undefined) throw new Error(`${PACKAGE}: the host gave no token budget`);
  const prints = state.memory.prints(messages, loop);
  const fields = compacted<Record<string, unknown>>({
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
  for (let attempt = 1; ; attempt++) {
    const { transcript } = plan;
    try {
      const answer = await shared.call(session, "assemble", { session, transcript, ...fields }, { timeoutMs: Math.max(1, end - Date.now()), signal: params.abortSignal }) as Answer;
      // The engine's own fallback is the whole transcript.
      if (typeof answer.degraded === "string" && answer.degraded !== "") throw new Error(`the engine is degraded: ${answer.degraded}`);
      const list = expand(answer.items, messages, plan);
      state.memory.learn(plan.prints, transcript.digest, loop);
      learnOutput(state.memory, answer, list, prints);
      shared.spare(state);
      if (answer.projectionEpoch !== undefined) state.epoch = answer.projectionEpoch;
      report(shared, answer);
      state.budget.spent(answer.estimatedTokens ?? 0, list.messages.reduce((sum, message) => sum + asHost(message), 0));
      return compacted<AssembleResult>({
        messages: list.messages,
        estimatedTokens: answer.estimatedTokens ?? 0,
        systemPromptAddition: answer.systemPromptAddition === "" ? undefined : answer.systemPromptAddition,
        promptAuthority: answer.promptAuthority,
        contextProjection: projectionOf(params, shared.settings, state.epoch),
      });
    } catch (error) {
      const needed = error instanceof ProtocolError && error.code === Code.needTranscript;
      if (transcript.skipped === undefined || !(needed || error instanceof NotShown)) throw error;
      // A longer tail first, where the sidecar knows one; then everything.
      if (needed && attempt === 1) state.memory.refused(error.data["known"], transcript);
      else state.memory.forget();
      plan = state.memory.plan(messages, prints);
    }
  }
}

/** Remembers the result as a list of its own: in a tool loop the host hands it back. */
function learnOutput(memory: Memory, answer: Answer, { messages, places }: Expanded, prints: readonly Print[]): void {
  const { count, digest } = answer.output ?? {};
  if (count !== messages.length || typeof digest !== "string") return;
  memory.learn(messages.map((message, i) => prints[places[i] ?? -1] ?? printOf(message)), digest, true);
}

function report(shared: Shared, answer: Answer): void {
  if (Array.isArray(answer.warnings)) for (const warning of answer.warnings) shared.warn("assemble", new Error(String(warning)));
}

function memorySections(sdk: Sdk, params: AssembleParams): readonly string[] {
  try {
    const section = sdk.buildMemorySystemPromptAddition?.(compacted({
      availableTools: params.availableTools ?? new Set<string>(),
      citationsMode: params.citationsMode,
      agentSessionKey: params.sessionKey,
    }));
    return section === undefined || section === "" ? [] : [section];
  } catch {
    return []; // a host without memory
  }
}
