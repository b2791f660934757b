// The parts of the host's contract that this plugin uses, in words of its own: the host's package is large, and nothing of it is needed to build.
// What the host passes is not trusted to have these shapes; whitelist.ts picks what crosses to the sidecar.

import type { FolderFinder } from "./agents.js";

/** A message in the host's own form. Its bytes are kept; nothing here looks inside except at the role. */
export type HostMessage = Record<string, unknown>;

/** Where the host keeps a session. */
export interface SessionTarget {
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
  storePath?: string;
}

/** Where the host keeps a transcript, as hosts say it that have no session targets. */
export interface TranscriptScope {
  agentId?: string;
  sessionId?: string;
  path?: string;
}

/** What the host says about the model run at hand; null where it does not know. */
export interface RuntimeSettings {
  schemaVersion?: number;
  runtime?: { host?: string; mode?: string; harnessId?: string | null; runtimeId?: string | null };
  model?: { requested?: string | null; resolved?: string | null; provider?: string | null; family?: string | null };
  contextEngineSelection?: { selectedId?: string | null; source?: string };
  executionHost?: { id?: string | null; label?: string | null };
  limits?: { promptTokenBudget?: number | null; maxOutputTokens?: number | null };
  diagnostics?: { fallbackReason?: string | null; degradedReason?: string | null };
}

/** A completion by the host's model. */
export interface CompletionParams {
  messages: { role: string; content: string }[];
  systemPrompt?: string;
  maxTokens?: number;
  model?: string;
  purpose?: string;
  signal?: AbortSignal;
}

export interface CompletionResult {
  text: string;
  model?: string;
  stopReason?: string;
  usage?: { inputTokens?: number; outputTokens?: number };
}

/** What the host lends to one call. It also holds its whole configuration and keys: it never leaves this process. */
export interface RuntimeContext {
  trigger?: string;
  provider?: string;
  modelId?: string;
  modelContextWindow?: number;
  tokenBudget?: number;
  currentTokenCount?: number;
  allowDeferredCompactionExecution?: boolean;
  llm?: { complete: (params: CompletionParams) => Promise<CompletionResult> };
}

/** What most calls of the host have in common. */
export interface SessionParams {
  sessionId: string;
  sessionKey?: string;
  agentId?: string;
  sessionTarget?: SessionTarget;
  transcriptScope?: TranscriptScope;
  runtimeSettings?: RuntimeSettings;
  runtimeContext?: RuntimeContext;
  abortSignal?: AbortSignal;
}

export interface AssembleParams extends SessionParams {
  messages: HostMessage[];
  tokenBudget?: number;
  prompt?: string;
  model?: string;
  availableTools?: Set<string>;
  citationsMode?: string;
}

export interface AssembleResult {
  messages: HostMessage[];
  estimatedTokens: number;
  systemPromptAddition?: string;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
  /** For a host with threads of its own: the epoch during which the thread goes on from what it was begun with. */
  contextProjection?: { mode: "thread_bootstrap"; epoch: string };
}

export interface CommitTurnParams extends SessionParams {
  advancementKey: string;
  messages: HostMessage[];
  isHeartbeat?: boolean;
}

export interface AfterTurnParams extends SessionParams {
  messages: HostMessage[];
  prePromptMessageCount: number;
  isHeartbeat?: boolean;
}

export interface CompactParams extends SessionParams {
  tokenBudget?: number;
  force?: boolean;
  currentTokenCount?: number;
  compactionTarget?: "budget" | "threshold";
  customInstructions?: string;
}

export interface CompactResult {
  ok: boolean;
  compacted: boolean;
  reason?: string;
  result?: {
    summary?: string;
    firstKeptEntryId?: string;
    tokensBefore: number;
    tokensAfter?: number;
    details?: unknown;
    /** The transcript that the session goes on with, where that is another one. */
    sessionId?: string;
    sessionTarget?: SessionTarget;
  };
}

export interface SpawnParams {
  parentSessionKey: string;
  childSessionKey: string;
  contextMode?: "isolated" | "fork";
  parentSessionId?: string | undefined;
  parentSessionFile?: string;
  childSessionId?: string | undefined;
  childSessionFile?: string;
  ttlMs?: number;
}

/** The members of an engine, as the host calls them. */
export interface ContextEngine {
  readonly info: Record<string, unknown>;
  bootstrap: (params: SessionParams) => Promise<{ bootstrapped: boolean; importedMessages?: number; reason?: string }>;
  maintain: (params: SessionParams) => Promise<{ changed: boolean; bytesFreed: number; rewrittenEntries: number; reason?: string }>;
  ingest: (params: SessionParams & { message: HostMessage; isHeartbeat?: boolean }) => Promise<{ ingested: boolean }>;
  ingestBatch: (params: SessionParams & { messages: HostMessage[]; isHeartbeat?: boolean }) => Promise<{ ingestedCount: number }>;
  afterTurn: (params: AfterTurnParams) => Promise<void>;
  commitTurn: (params: CommitTurnParams) => Promise<{ status: "committed" | "duplicate" }>;
  assemble: (params: AssembleParams) => Promise<AssembleResult>;
  compact: (params: CompactParams) => Promise<CompactResult>;
  prepareSubagentSpawn: (params: SpawnParams) => Promise<{ rollback: () => Promise<void> } | undefined>;
  onSubagentEnded: (params: { childSessionKey: string; reason: string }) => Promise<void>;
  dispose: () => Promise<void>;
}

export interface Logger {
  debug?: (message: string) => void;
  info: (message: string) => void;
  warn: (message: string) => void;
  error: (message: string) => void;
}

/** Whose run a tool is made for. Other fields of the host's context are not looked at. */
export interface ToolContext {
  sessionKey?: string;
  sessionId?: string;
  agentId?: string;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  details: Record<string, unknown>;
}

/** A tool that the host offers to models. */
export interface AgentTool {
  name: string;
  label: string;
  description: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** Shown to the model itself. The host's catalogue would hand the text on as JSON inside JSON. */
  catalogMode: "direct-only";
  execute: (callId: string, params: unknown, signal?: AbortSignal) => Promise<ToolResult>;
}

/** Where a chat command was typed. Other fields of the host's context are not looked at. */
export interface CommandContext {
  /** What follows the command's name. */
  args?: string;
  sessionKey?: string;
  sessionId?: string;
  agentId?: string;
  sessionTarget?: SessionTarget;
  /** The host's configuration as it is now. */
  config?: Record<string, unknown>;
  /** compactCurrent does what the host's own /compact does, in the same conversation. */
  runtimeContext?: { compactCurrent?: () => Promise<{ compacted: boolean; reason?: string; tokensBefore?: number; tokensAfter?: number }> };
}

/** A command that people type into a chat. The model does not see it. */
export interface ChatCommand {
  name: string;
  description: string;
  acceptsArgs: boolean;
  /** Only senders that the host lets give commands. */
  requireAuth: boolean;
  handler: (context: CommandContext) => Promise<{ text: string }>;
}

/** What a plugin is handed at registration. */
export interface PluginApi {
  registrationMode?: string;
  pluginConfig?: Record<string, unknown>;
  config?: Record<string, unknown>;
  runtime?: { version?: unknown; agent?: FolderFinder };
  logger: Logger;
  registerContextEngine: (id: string, factory: (context: unknown) => Promise<ContextEngine>) => void;
  registerTool?: (factory: (context: ToolContext) => AgentTool | null, options: { name: string }) => void;
  registerCommand?: (command: ChatCommand) => void;
  registerService?: (service: { id: string; start: () => void; stop: () => Promise<void> }) => void;
}
