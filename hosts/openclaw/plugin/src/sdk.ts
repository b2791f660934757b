// The functions of the host's plugin SDK that the plugin uses. They are looked up when they are needed: older hosts lack some, and tests have no host.
import type { CompactParams, CompactResult, HostMessage } from "./host-types.js";

/** A page of a session's stored messages. */
export type TranscriptPage =
  | { kind: "page"; cursor: unknown; hasMore: boolean; entries: { message: HostMessage }[] }
  | { kind: "reset"; cursor?: unknown; reason?: string }
  | { kind: "missing" }
  | { kind: "unavailable"; reason?: string };

export interface TranscriptQuery {
  agentId: string;
  sessionKey: string;
  sessionId: string;
  storePath?: string;
  cursor?: unknown;
  maxMessages?: number;
  maxBytes?: number;
}

export interface Sdk {
  delegateCompactionToRuntime?: (params: CompactParams) => Promise<CompactResult>;
  buildMemorySystemPromptAddition?: (params: { availableTools: Set<string>; citationsMode?: string; agentSessionKey?: string }) => string | undefined;
  readSessionTranscriptVisibleMessageDelta?: (query: TranscriptQuery) => TranscriptPage | Promise<TranscriptPage>;
  /** The folder that the host keeps its state in. */
  resolveStateDir?: () => string;
}

const cores = ["openclaw/plugin-sdk/core", "openclaw/plugin-sdk/session-transcript-runtime", "openclaw/plugin-sdk/state-paths"];

let loaded: Promise<Sdk> | undefined;

/** The host's SDK; what is not there is undefined. */
export function hostSdk(): Promise<Sdk> {
  loaded ??= Promise.all(cores.map(async (name) => import(name).catch(() => ({})) as Promise<Sdk>)).then(([core, transcript, paths]) => {
    const out: Sdk = {};
    if (core?.delegateCompactionToRuntime) out.delegateCompactionToRuntime = core.delegateCompactionToRuntime;
    if (core?.buildMemorySystemPromptAddition) out.buildMemorySystemPromptAddition = core.buildMemorySystemPromptAddition;
    if (transcript?.readSessionTranscriptVisibleMessageDelta) out.readSessionTranscriptVisibleMessageDelta = transcript.readSessionTranscriptVisibleMessageDelta;
    if (paths?.resolveStateDir) out.resolveStateDir = paths.resolveStateDir;
    return out;
  });
  return loaded;
}
