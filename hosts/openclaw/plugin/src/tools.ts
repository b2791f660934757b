// The way back for agents: tools that look into what their window does not show any more. The session is always that of the run that calls.
import { describeText, expandText, failureText, searchText, type Answer } from "./answers.js";
import type { AgentTool, ToolContext, ToolResult } from "./host-types.js";
import type { Shared } from "./shared.js";
import { compacted, sessionOf } from "./whitelist.js";

export const toolNames = ["context_search", "context_expand", "context_describe"] as const;
export type ToolName = (typeof toolNames)[number];

/** What an answer may cost in tokens: what is asked for, at most this, and never more than a share of the prompt. */
const mostTokens = 8_000;
const usualTokens = 2_000;
const leastTokens = 200;
const share = 0.2;
const mostFound = 20;
const mostAround = 20;
const mostOffset = 1 << 30;

type Fields = Readonly<Record<string, unknown>>;

// Every request pays for these: a name that says enough has no description. No bounds: what is out of range is brought into it, and a host would refuse it before.
const whole = { type: "integer" };
const text = { type: "string" };

const parameters: Record<ToolName, { properties: Record<string, object>; required?: string[] }> = {
  context_search: {
    properties: { query: text, since: { ...text, description: "2026-01-31" }, until: text, limit: whole, offset: whole, tokens: whole },
    required: ["query"],
  },
  context_expand: { properties: { id: text, before: whole, after: whole, offset: whole, tokens: whole }, required: ["id"] },
  context_describe: { properties: {} },
};

const labels: Record<ToolName, string> = { context_search: "Search history", context_expand: "Show history", context_describe: "Describe history" };

const descriptions: Record<ToolName, string> = {
  context_search: "Search all of this conversation, by words or one exact string, before you say you do not know. Entries are cited as #id.",
  context_expand: "Show the entry #id in full, with so many before and after.",
  context_describe: "What is stored, and what is shown.",
};

/** The tools of one run; undefined where the host does not say whose it is. */
export function contextTools(shared: Shared, context: ToolContext): Record<ToolName, AgentTool> | undefined {
  if (context.sessionKey === undefined || context.sessionKey === "") return undefined;
  const session = sessionOf({ sessionId: context.sessionId ?? "", ...compacted<{ sessionKey: string; agentId: string }>({ sessionKey: context.sessionKey, agentId: context.agentId }) });
  const call = (method: string, fields: Fields, signal: AbortSignal | undefined): Promise<unknown> =>
    shared.call(session, method, { session, ...fields }, { timeoutMs: shared.settings.timeouts.call, signal });
  const most = (): number => Math.max(leastTokens, Math.min(mostTokens, Math.floor((shared.state(session).budget.now() ?? Infinity) * share)));
  const run: Record<ToolName, (args: Fields, signal: AbortSignal | undefined) => Promise<Answer>> = {
    context_search: async (args, signal) => {
      const query = textArgument(args, "query").trim();
      if (query === "") throw new BadArgument("query: say what to look for");
      const fields = compacted<Record<string, unknown>>({
        query, limit: countArgument(args, "limit", 1, mostFound), offset: countArgument(args, "offset", 0, mostOffset),
        from: timeArgument(args, "since"), to: timeArgument(args, "until"), tokens: tokensArgument(args, most()),
      });
      return searchText(query, await call("search", fields, signal), session.session);
    },
    context_expand: async (args, signal) => {
      const id = idArgument(args);
      const around = compacted<Record<string, unknown>>({ before: countArgument(args, "before", 0, mostAround), after: countArgument(args, "after", 0, mostAround) });
      const offset = countArgument(args, "offset", 0, mostOffset);
      const fields = compacted<Record<string, unknown>>({ id, ...around, offset, tokens: tokensArgument(args, most()) });
      return expandText(id, around, offset ?? 0, await call("expand", fields, signal), session.session);
    },
    context_describe: async (_, signal) => describeText(await call("describe", {}, signal), most()),
  };
  const make = (name: ToolName): AgentTool => ({
    name,
    label: labels[name],
    description: descriptions[name],
    parameters: { type: "object", ...parameters[name] },
    catalogMode: "direct-only",
    execute: async (_callId, params, signal): Promise<ToolResult> => {
      try {
        const args = typeof params === "object" && params !== null ? (params as Fields) : {};
        return result(await run[name](args, signal));
      } catch (error) {
        if (signal?.aborted) throw error;
        // A thrown error would be shown to the user as a failed tool; this is for the model to act on.
        const { text, expected } = failureText(error);
        if (!expected) shared.warn(name, error);
        return result({ text, details: { ok: false } });
      }
    },
  });
  return { context_search: make("context_search"), context_expand: make("context_expand"), context_describe: make("context_describe") };
}

const result = ({ text, details }: Answer): ToolResult => ({ content: [{ type: "text", text }], details });

/** An argument that cannot be used; the text says what to do instead. */
export class BadArgument extends Error {
  override readonly name = "BadArgument";
}

function textArgument(args: Fields, key: string): string {
  const value = args[key];
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  throw new BadArgument(`${key}: must be a text`);
}

/** A number within bounds. Models write numbers as texts, and too large ones: both are taken for what is meant. */
function countArgument(args: Fields, key: string, least: number, most: number): number | undefined {
  const value = args[key];
  if (value === undefined || value === null || value === "") return undefined;
  const n = typeof value === "string" || typeof value === "number" ? Number(value) : NaN;
  if (!Number.isFinite(n)) throw new BadArgument(`${key}: must be a whole number, ${least} to ${most}`);
  return Math.min(most, Math.max(least, Math.floor(n)));
}

const tokensArgument = (args: Fields, most: number): number => Math.min(most, countArgument(args, "tokens", leastTokens, mostTokens) ?? usualTokens);

function timeArgument(args: Fields, key: string): string | undefined {
  const value = textArgument(args, key).trim();
  if (value === "") return undefined;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) throw new BadArgument(`${key}: write a time as 2026-01-31 or 2026-01-31T15:00:00Z`);
  return at.toISOString();
}

/** The id, also where the whole citation was copied, or a model wrote a position as a number. */
function idArgument(args: Fields): string {
  const value = typeof args["id"] === "number" ? String(args["id"]) : textArgument(args, "id").trim();
  const id = (/#([^\s\],#]+)/.exec(value)?.[1] ?? value.replace(/^#+/, "")).trim();
  if (id === "") throw new BadArgument("id: give what stands behind the # of a citation; context_search finds entries");
  return id;
}
