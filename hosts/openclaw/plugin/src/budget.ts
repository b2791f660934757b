// What a session's prompt may cost. The host's budget leaves out what it adds to a prompt afterwards, tool schemas above all, and a compaction that it demands before the
// model is called comes at a mark of its own. Both are learnt from what it says when it demands one.
import type { AssembleParams, CompactParams } from "./host-types.js";
import { weighText } from "./weigh.js";

/** No figure of the host makes the budget smaller than this share of what it grants. */
const leastShare = 0.6;

export class Budget {
  /** The host's budget for the newest prompt, in tokens. */
  #granted: number | undefined;
  /** What the newest prompt cost, in the engine's count. */
  #estimate: number | undefined;
  /** The largest cost that did not make the host demand a compaction. */
  #ceiling: number | undefined;
  #model: string | undefined;

  /** The budget for a prompt that the host grants so much. */
  grant(granted: number, model: string | undefined): number {
    if (model !== this.#model) this.#ceiling = undefined; // another window
    this.#model = model;
    this.#granted = Math.floor(granted);
    return this.now() ?? this.#granted;
  }

  spent(estimate: number): void {
    this.#estimate = estimate;
  }

  /** The budget as last granted; undefined before. */
  now(): number | undefined {
    if (this.#granted === undefined) return undefined;
    if (this.#ceiling === undefined) return this.#granted;
    return Math.min(this.#granted, Math.max(this.#ceiling, Math.floor(this.#granted * leastShare)));
  }

  /**
   * What history may cost in a tool loop whose host grants so much: there the host takes off what the turn has added, and neither system prompt nor the room
   * for an answer, which the prompt's budget did without.
   */
  inLoop(granted: number, params: AssembleParams): number {
    const prompt = this.now();
    const window = params.runtimeSettings?.limits?.promptTokenBudget;
    if (prompt === undefined) return granted;
    if (typeof window !== "number") return Math.min(prompt, granted);
    return Math.max(0, Math.min(granted, prompt - Math.max(0, window - granted - weighText(params.prompt ?? ""))));
  }

  /** The host says that a prompt was, or would be, too large: everything in it that is not the engine's comes off. */
  demanded(params: CompactParams): void {
    const trigger = params.runtimeContext?.trigger;
    const count = params.currentTokenCount ?? params.runtimeContext?.currentTokenCount;
    if ((trigger !== "budget" && trigger !== "overflow") || count === undefined || this.#estimate === undefined || this.#estimate <= 0) return;
    const added = Math.max(0, count - this.#estimate);
    const window = params.tokenBudget ?? params.runtimeContext?.tokenBudget;
    this.#ceiling = window === undefined ? this.#estimate : Math.min(this.#estimate, Math.max(0, window - added));
  }
}
