// What the sidecar may ask of the host while a call of the host runs: its own compaction, and its model.
import { AsyncLocalStorage } from "node:async_hooks";

import type { HostSide } from "./client.js";
import { answerOf } from "./compaction.js";
import { Code, ProtocolError } from "./errors.js";
import type { CompactParams, CompactResult, CompletionParams, RuntimeContext } from "./host-types.js";
import type { Sdk } from "./sdk.js";
import { compacted } from "./whitelist.js";

type Fields = Readonly<Record<string, unknown>>;

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const count = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

export interface CallbackOptions {
  sdk: () => Promise<Sdk>;
  context: RuntimeContext | undefined;
  /** The host's own parameters of the compaction that is under way, if one is. */
  compaction?: CompactParams;
  /** Is told what failed on the host's side; the sidecar is not told why. */
  failed?: (what: string, error: unknown) => void;
  /** Gets the host's whole result of a delegated compaction. */
  delegated?: (result: CompactResult) => void;
}

/**
 * Answers the sidecar's requests for one call of the host. The host's functions find their run by the asynchronous context of that call; a request of the sidecar
 * arrives in another one.
 */
export function hostSide(options: CallbackOptions): HostSide {
  const inCall = AsyncLocalStorage.snapshot();
  return async (method, params, signal) => inCall(async () => {
    try {
      if (method === "host.compact") return await delegate(options, params, signal);
      if (method === "host.complete") return await complete(options, params, signal);
    } catch (error) {
      options.failed?.(method, error);
      throw error;
    }
    throw new ProtocolError(Code.methodNotFound, `${method}: not known`);
  });
}

async function delegate(options: CallbackOptions, params: Fields, signal: AbortSignal): Promise<object> {
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

async function complete(options: CallbackOptions, params: Fields, signal: AbortSignal): Promise<object> {
  const llm = options.context?.llm;
  if (!llm) throw new ProtocolError(Code.missingCapability, "host.complete: the host lends no model to this call");
  const result = await llm.complete(compacted<CompletionParams>({
    messages: [{ role: "user", content: text(params["prompt"]) ?? "" }],
    systemPrompt: text(params["system"]),
    maxTokens: count(params["maxTokens"]),
    model: text(params["model"]),
    purpose: text(params["purpose"]),
    signal,
  }));
  return compacted<Record<string, unknown>>({
    text: text(result.text) ?? "",
    model: text(result.model),
    inputTokens: count(result.usage?.inputTokens),
    outputTokens: count(result.usage?.outputTokens),
    stopReason: text(result.stopReason),
  });
}
