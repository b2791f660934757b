// What a session's prompt may cost. The host's budget leaves out what it adds to a prompt afterwards, tool schemas above all; a compaction that it demands before the
// model is called comes at a mark of its own; and what room is left for the answer it takes from a count of its own. All that is learnt from what it says, and
// unlearnt when it says otherwise.
import type { AssembleParams, CompactParams, HostMessage } from "./host-types.js";
import { weighText } from "./weigh.js";

/** No figure of the host makes the budget smaller than this share of what it grants. */
const leastShare = 0.6;
/** So many of the newest turns say what the host adds to a prompt. */
const memory = 4;
/** After so many turns that say nothing a demand of the host is forgotten. */
const patience = 8;
/** What is tried after a refusal, as a share of what was refused. */
const smaller = 0.75;
/** A budget that was forced down rises when there is so much more room. */
const worthwhile = 1.1;
/** What the host adds to its count of a prompt before it takes the rest of the window for the answer. */
const hostMargin = 1.25;
/** What the host adds to its count of system prompt and newest message before it takes them off the budget. */
const hostReserveMargin = 1.2;
/** Room for an answer, in tokens; less where the host reserves less than four times as much. */
const answer = 4096;
/** Room that is enough in a tool loop: what was sent is sent again as long as it can be. */
const answerInLoop = 1024;
/** Tokens by which the histories of two turns must differ to say how a provider counts. */
const telling = 8192;
/** What tool schemas are taken to cost before a turn said it, as a share of the window and at most: after a restart the first turn needs room for its answer too. */
const toolsShare = 1 / 8;
const toolsMost = 4096;

export class Budget {
  /** The host's budget for the newest prompt, and what it reserves for the answer, in tokens. */
  #granted: number | undefined;
  #reserve = 0;
  #model: string | undefined;
  #window: number | undefined;
  /** What the newest prompt cost, and the first one of the turn, in the engine's count; undefined where nobody counted well. */
  #estimate: number | undefined;
  #first: number | undefined;
  #calls = 0;
  #learns = false;
  /** The host's count of history for one token of the engine's. */
  #ratio = 0;
  /** What tool schemas cost; undefined before a turn said it. */
  #tools: number | undefined;
  /** The turn of the smallest history: what the engine counted of it, and the provider of that and of the schemas. */
  #small: { first: number; rest: number } | undefined;
  /** The provider's count of history for one token of the engine's: the smallest that two turns said; undefined before. */
  #scale: number | undefined;
  /** The host's mark when it demanded a compaction, and the largest cost that stays below it. */
  #mark = 0;
  #ceiling: number | undefined;
  /** What a turn's prompt may cost after the provider refused it. */
  #refused: number | undefined;
  /** What was added in the newest turns to what the engine counted. */
  #added: number[] = [];
  #silent = 0;

  /** The budget for a prompt that the host grants so much. reserve is what it keeps for the answer besides, where it says so. */
  grant(granted: number, model: string | undefined, reserve?: number | null): number {
    if (model !== this.#model) {
      this.#ceiling = this.#window = this.#refused = undefined; // another window
      this.#ratio = 0;
      this.#small = this.#scale = undefined; // another provider's count
    }
    this.#model = model;
    this.#granted = Math.floor(granted);
    this.#reserve = typeof reserve === "number" && reserve > 0 ? reserve : 0;
    this.#first = undefined;
    this.#calls = 0;
    return this.now() ?? this.#granted;
  }

  /** The budget for a call of the tool loop: what is granted, with room for the answer. The engine knows the turn's own. */
  loop(granted: number, params: AssembleParams): number {
    const window = params.runtimeSettings?.limits?.promptTokenBudget;
    if (typeof window !== "number") return granted;
    this.#window = window;
    return Math.min(granted, this.#withAnswer(added(window, granted, params), answerInLoop) ?? granted);
  }

  /** A prompt was made. estimate is its cost as the engine counts it, host as the host does, which only an engine's count is compared with. */
  spent(estimate: number, host?: number): void {
    this.#estimate = estimate;
    if (++this.#calls <= 2) this.#first = estimate; // the prompt's own, and the one before the model is called first
    this.#learns = host !== undefined;
    // In steps, so that the budget does not move with every message.
    if (host !== undefined && estimate > 1000) this.#ratio = Math.ceil((20 * host) / estimate) / 20;
  }

  /** The budget as last granted; undefined before. */
  now(): number | undefined {
    if (this.#granted === undefined) return undefined;
    const most = Math.min(this.#ceiling ?? this.#granted, this.#withAnswer(0, answer) ?? this.#granted);
    return Math.min(this.#granted, this.#refused ?? Infinity, Math.max(most, Math.floor(this.#granted * leastShare)));
  }

  /**
   * What history may cost in a tool loop without an engine: there the host takes off what the turn has added, and neither system prompt nor the room for an answer, which
   * the prompt's budget did without.
   */
  inLoop(granted: number, params: AssembleParams): number {
    const prompt = this.now();
    const window = params.runtimeSettings?.limits?.promptTokenBudget;
    if (prompt === undefined) return granted;
    if (typeof window !== "number") return Math.min(prompt, granted);
    return Math.max(0, Math.min(granted, prompt - added(window, granted, params)));
  }

  /** The host says that a prompt was, or would be, too large: everything in it that is not the engine's comes off. Returns what it cost; undefined where it says no such thing. */
  demanded(params: CompactParams): number | undefined {
    const trigger = params.runtimeContext?.trigger;
    const count = params.currentTokenCount ?? params.runtimeContext?.currentTokenCount;
    if ((trigger !== "budget" && trigger !== "overflow") || count === undefined || this.#estimate === undefined || this.#estimate <= 0) return undefined;
    const more = Math.max(0, count - this.#estimate);
    const window = params.tokenBudget ?? params.runtimeContext?.tokenBudget;
    this.#mark = window === undefined ? count : trigger === "budget" ? window - this.#reserve : window;
    this.#ceiling = Math.min(this.#estimate, Math.max(0, this.#mark - more));
    this.#added = [more];
    this.#silent = 0;
    // A provider that refuses what is less than that share has another window than the host says. The next prompt has to be smaller in any case.
    if (trigger === "overflow" && (this.now() ?? 0) >= this.#estimate) this.#refused = Math.floor(this.#estimate * smaller);
    return this.#estimate;
  }

  /** A turn has ended: what the provider counted says what is added to a prompt now. */
  ended(messages: readonly HostMessage[]): void {
    this.#refused = undefined;
    const usages = messages.filter((message) => message["role"] === "assistant").map((message) => usageOf(message["usage"])).filter((usage) => usage !== undefined);
    const [begin, end] = [usages[0], usages.at(-1)];
    if (!begin || !end || !this.#learns || this.#estimate === undefined) {
      if (++this.#silent >= patience) this.#ceiling = undefined;
      return;
    }
    this.#silent = 0;
    const own = this.#ownPrompt();
    if (own !== undefined && this.#first !== undefined) this.#tools = this.#schemas(this.#first, begin.prompt - own);
    this.#added = [...this.#added, Math.max(0, end.total - this.#estimate)].slice(-memory);
    if (this.#ceiling === undefined || this.#granted === undefined || this.#added.length < memory) return;
    const room = this.#mark - Math.max(...this.#added);
    if (room >= this.#granted) this.#ceiling = undefined;
    else if (room > this.#ceiling * worthwhile) this.#ceiling = room;
  }

  /**
   * What tool schemas cost when the provider counted rest for them and a history that the engine counts as first. Its count of history may be the host's, the engine's
   * or between them. Two turns of different sizes say which; until then it is taken to be the smaller one, which leaves room.
   */
  #schemas(first: number, rest: number): number {
    const [low, high] = [Math.min(1, this.#ratio || 1), Math.max(1, this.#ratio)];
    if (this.#small !== undefined && first - this.#small.first >= telling) {
      const said = (rest - this.#small.rest) / (first - this.#small.first);
      this.#scale = Math.min(this.#scale ?? high, Math.max(low, said));
    }
    if (this.#small === undefined || first < this.#small.first) this.#small = { first, rest };
    return Math.max(0, rest - first * Math.max(low, Math.min(this.#scale ?? low, high)));
  }

  /** System prompt and newest message, as the host counts them; undefined where the window is not known. */
  #ownPrompt(): number | undefined {
    if (this.#window === undefined || this.#granted === undefined) return undefined;
    return Math.max(0, (this.#window - this.#reserve - this.#granted) / hostReserveMargin);
  }

  /** What history may cost so that the host leaves so much room for an answer when the turn has added so much; undefined where it is not known. */
  #withAnswer(turn: number, least: number): number | undefined {
    const own = this.#ownPrompt();
    if (own === undefined || this.#window === undefined || this.#ratio === 0) return undefined;
    const room = this.#window - Math.min(least, Math.floor(this.#reserve / 4)) - hostMargin * (own + (this.#tools ?? Math.min(toolsMost, this.#window * toolsShare)) + turn);
    return Math.max(0, Math.floor(room / (hostMargin * this.#ratio)));
  }
}

/** What a turn has added to its prompt in the tool loop. */
const added = (window: number, granted: number, params: AssembleParams): number => Math.max(0, window - granted - weighText(params.prompt ?? ""));

function usageOf(usage: unknown): { prompt: number; total: number } | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const count = (key: string): number => {
    const value = (usage as Record<string, unknown>)[key];
    return typeof value === "number" && value > 0 ? value : 0;
  };
  const prompt = count("input") + count("cacheRead") + count("cacheWrite");
  return prompt > 0 ? { prompt, total: prompt + count("output") } : undefined;
}
