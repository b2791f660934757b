// What the host has stored of a session before the current turn, read through its transcript reader.
import type { HostMessage, SessionParams } from "./host-types.js";
import type { Sdk } from "./sdk.js";
import type { WireSession } from "./whitelist.js";

const pageMessages = 2_000;
const pageBytes = 8_000_000;
/** Bounds for a reader that never comes to an end. */
const maxPages = 1_000;

/**
 * Reads the stored messages that the host shows to models. Undefined when the host has no reader, or cannot say at the moment; what assemble is handed
 * is then all there is.
 */
export async function storedHistory(sdk: Sdk, session: WireSession, params: SessionParams): Promise<HostMessage[] | undefined> {
  const read = sdk.readSessionTranscriptVisibleMessageDelta;
  if (!read) return undefined;
  const { sessionTarget } = params;
  let out: HostMessage[] = [];
  let cursor: unknown;
  for (let i = 0; i < maxPages; i++) {
    const page = await read({
      agentId: session.agent,
      sessionKey: session.session,
      sessionId: params.sessionId,
      ...(sessionTarget?.storePath === undefined ? {} : { storePath: sessionTarget.storePath }),
      ...(cursor === undefined ? {} : { cursor }),
      maxMessages: pageMessages,
      maxBytes: pageBytes,
    });
    if (page.kind === "missing") return [];
    if (page.kind === "unavailable") return undefined;
    if (page.kind === "reset") {
      if (i > 0 && out.length === 0) return undefined; // it resets for ever
      out = [];
      cursor = page.cursor;
      continue;
    }
    out.push(...page.entries.map((entry) => entry.message));
    cursor = page.cursor;
    if (!page.hasMore) return shown(out);
  }
  return undefined;
}

/** What of a session's rows is conversation, from the newest summary of the host on: what that stands for is not shown any more. */
export function shown(rows: readonly HostMessage[]): HostMessage[] {
  const last = rows.findLastIndex((row) => row["role"] === "compactionSummary");
  return rows.slice(Math.max(last, 0)).filter((row) => isConversation(row) && !isFailure(row));
}

/** Reports whether a row is for models. The host also keeps rows that only its own screens show, and marks them. */
export function isConversation(row: HostMessage): boolean {
  return row["excludeFromContext"] !== true;
}

/** Reports whether a row is an answer that failed, which the host shows to no model later. */
function isFailure(row: HostMessage): boolean {
  return row["role"] === "assistant" && (row["stopReason"] === "error" || row["stopReason"] === "aborted");
}
