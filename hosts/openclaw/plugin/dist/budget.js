import { weighText } from "./weigh.js";
/** No figure of the host makes the budget smaller than this share of what it grants. */
const leastShare = 0.6;
export class Budget {
    /** The host's budget for the newest prompt, in tokens. */
    #granted;
    /** What the newest prompt cost, in the engine's count. */
    #estimate;
    /** The largest cost that did not make the host demand a compaction. */
    #ceiling;
    #model;
    /** The budget for a prompt that the host grants so much. */
    grant(granted, model) {
        if (model !== this.#model)
            this.#ceiling = undefined; // another window
        this.#model = model;
        this.#granted = Math.floor(granted);
        return this.now() ?? this.#granted;
    }
    spent(estimate) {
        this.#estimate = estimate;
    }
    /** The budget as last granted; undefined before. */
    now() {
        if (this.#granted === undefined)
            return undefined;
        if (this.#ceiling === undefined)
            return this.#granted;
        return Math.min(this.#granted, Math.max(this.#ceiling, Math.floor(this.#granted * leastShare)));
    }
    /**
     * What history may cost in a tool loop whose host grants so much: there the host takes off what the turn has added, and neither system prompt nor the room
     * for an answer, which the prompt's budget did without.
     */
    inLoop(granted, params) {
        const prompt = this.now();
        const window = params.runtimeSettings?.limits?.promptTokenBudget;
        if (prompt === undefined)
            return granted;
        if (typeof window !== "number")
            return Math.min(prompt, granted);
        return Math.max(0, Math.min(granted, prompt - Math.max(0, window - granted - weighText(params.prompt ?? ""))));
    }
    /** The host says that a prompt was, or would be, too large: everything in it that is not the engine's comes off. */
    demanded(params) {
        const trigger = params.runtimeContext?.trigger;
        const count = params.currentTokenCount ?? params.runtimeContext?.currentTokenCount;
        if ((trigger !== "budget" && trigger !== "overflow") || count === undefined || this.#estimate === undefined || this.#estimate <= 0)
            return;
        const added = Math.max(0, count - this.#estimate);
        const window = params.tokenBudget ?? params.runtimeContext?.tokenBudget;
        this.#ceiling = window === undefined ? this.#estimate : Math.min(this.#estimate, Math.max(0, window - added));
    }
}
