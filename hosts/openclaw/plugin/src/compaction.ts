// Results of compactions, in the words of the host and in those of the sidecar. The host knows a session by its key and a transcript by an id of its own, and may go on
// with another transcript under the same key; for the sidecar a key is a session, and it continues itself then.
import type { CompactParams, CompactResult } from "./host-types.js";
import { compacted, sessionOf, type WireSession } from "./whitelist.js";

type Fields = Readonly<Record<string, unknown>>;

const record = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});
const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
const count = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** The sidecar's answer, for the host. */
export function resultOf(answer: unknown): CompactResult {
  const said = record(answer);
  const { agent, session } = record(said["successor"]);
  const key = text(session)?.startsWith("agent:") === true ? text(session) : undefined;
  const id = key === undefined ? text(session) : undefined;
  return compacted<CompactResult>({
    ok: said["ok"] === true,
    compacted: said["compacted"] === true,
    reason: text(said["reason"]),
    result: compacted<NonNullable<CompactResult["result"]>>({
      summary: text(said["summary"]),
      firstKeptEntryId: text(said["firstKeptEntryId"]),
      tokensBefore: count(said["tokensBefore"]) ?? 0,
      tokensAfter: count(said["tokensAfter"]),
      sessionId: id,
      sessionTarget: key === undefined && id === undefined ? undefined : compacted<object>({ agentId: text(agent), sessionId: id, sessionKey: key }),
    }),
  });
}

/** The result of the host's own compaction, for the sidecar. */
export function answerOf(result: CompactResult, params: CompactParams): object {
  const { summary, firstKeptEntryId, tokensBefore, tokensAfter, sessionId, sessionTarget } = result.result ?? {};
  const before = sessionOf(params);
  const successor: WireSession = { agent: text(sessionTarget?.agentId) ?? before.agent, session: text(sessionTarget?.sessionKey) ?? (params.sessionId === before.session ? text(sessionTarget?.sessionId) ?? text(sessionId) : undefined) ?? before.session };
  const itself = successor.agent === before.agent && successor.session === before.session;
  return compacted<Record<string, unknown>>({
    ok: result.ok,
    compacted: result.compacted,
    reason: text(result.reason),
    summary: text(summary),
    firstKeptEntryId: text(firstKeptEntryId),
    tokensBefore: count(tokensBefore) ?? 0,
    tokensAfter: count(tokensAfter) ?? 0,
    successor: itself ? undefined : successor,
    delegated: true,
  });
}
