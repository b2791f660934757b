// What the sidecar may ask of the host while a call of the host runs: its own compaction, and its model.
import { AsyncLocalStorage } from "node:async_hooks";
import { answerOf } from "./compaction.js";
import { Code, ProtocolError } from "./errors.js";
import { compacted } from "./whitelist.js";
const text = (value) => (typeof value === "string" ? value : undefined);
const count = (value) => (typeof value === "number" ? value : undefined);
/**
 * Answers the sidecar's requests for one call of the host. The host's functions find their run by the asynchronous context of that call; a request of the sidecar
 * arrives in another one.
 */
export function hostSide(options) {
    const inCall = AsyncLocalStorage.snapshot();
    return async (method, params, signal) => inCall(async () => {
        try {
            if (method === "host.compact")
                return await delegate(options, params, signal);
            if (method === "host.complete")
                return await complete(options, params, signal);
        }
        catch (error) {
            options.failed?.(method, error);
            throw error;
        }
        throw new ProtocolError(Code.methodNotFound, `${method}: not known`);
    });
}
async function delegate(options, params, signal) {
    const { delegateCompactionToRuntime } = await options.sdk();
    if (!delegateCompactionToRuntime || !options.compaction) {
        throw new ProtocolError(Code.missingCapability, "host.compact: the host offers its own compaction only while it compacts");
    }
    const { abortSignal } = options.compaction;
    const both = abortSignal ? AbortSignal.any([abortSignal, signal]) : signal;
    // The host's own parameters, with what the engine decided on top.
    const instructions = text(params["customInstructions"]);
    const result = await delegateCompactionToRuntime({ ...options.compaction, ...(instructions === undefined ? {} : { customInstructions: instructions }), abortSignal: both });
    options.delegated?.(result);
    return answerOf(result, options.compaction);
}
async function complete(options, params, signal) {
    const llm = options.context?.llm;
    if (!llm)
        throw new ProtocolError(Code.missingCapability, "host.complete: the host lends no model to this call");
    const result = await llm.complete(compacted({
        messages: [{ role: "user", content: text(params["prompt"]) ?? "" }],
        systemPrompt: text(params["system"]),
        maxTokens: count(params["maxTokens"]),
        model: text(params["model"]),
        purpose: text(params["purpose"]),
        signal,
    }));
    return compacted({
        text: text(result.text) ?? "",
        model: text(result.model),
        inputTokens: count(result.usage?.inputTokens),
        outputTokens: count(result.usage?.outputTokens),
        stopReason: text(result.stopReason),
    });
}
