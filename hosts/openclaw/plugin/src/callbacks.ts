// What the sidecar may ask of the host while a call of the host runs: its own compaction, and its model.
import type { HostSide } from "./client.js";
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
  /** Gets the host's whole result of a delegated compaction. */
  delegated?: (result: CompactResult) => void;
}

/** Answers the sidecar's requests for one call of the host. */
export function hostSide(options: CallbackOptions): HostSide {
  return async (method, params, signal) => {
    if (method === "host.compact") return delegate(options, params, signal);
    if (method === "host.complete") return complete(options, params, signal);
    throw new ProtocolError(Code.methodNotFound, `${method}: not known`);
  };
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
  return compacted<Record<string, unknown>>({
    ok: result.ok,
    compacted: result.compacted,
    reason: text(result.reason),
    tokensBefore: count(result.result?.tokensBefore) ?? 0,
    tokensAfter: count(result.result?.tokensAfter) ?? 0,
    delegated: true,
  });
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
