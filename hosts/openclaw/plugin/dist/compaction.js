import { compacted, sessionOf } from "./whitelist.js";
const record = (value) => (typeof value === "object" && value !== null ? value : {});
const text = (value) => (typeof value === "string" && value !== "" ? value : undefined);
const count = (value) => (typeof value === "number" ? value : undefined);
/** The sidecar's answer, for the host. */
export function resultOf(answer) {
    const said = record(answer);
    const { agent, session } = record(said["successor"]);
    const key = text(session)?.startsWith("agent:") === true ? text(session) : undefined;
    const id = key === undefined ? text(session) : undefined;
    return compacted({
        ok: said["ok"] === true,
        compacted: said["compacted"] === true,
        reason: text(said["reason"]),
        result: compacted({
            summary: text(said["summary"]),
            firstKeptEntryId: text(said["firstKeptEntryId"]),
            tokensBefore: count(said["tokensBefore"]) ?? 0,
            tokensAfter: count(said["tokensAfter"]),
            sessionId: id,
            sessionTarget: key === undefined && id === undefined ? undefined : compacted({ agentId: text(agent), sessionId: id, sessionKey: key }),
        }),
    });
}
/** The result of the host's own compaction, for the sidecar. */
export function answerOf(result, params) {
    const { summary, firstKeptEntryId, tokensBefore, tokensAfter, sessionId, sessionTarget } = result.result ?? {};
    const before = sessionOf(params);
    const successor = { agent: text(sessionTarget?.agentId) ?? before.agent, session: text(sessionTarget?.sessionKey) ?? (params.sessionId === before.session ? text(sessionTarget?.sessionId) ?? text(sessionId) : undefined) ?? before.session };
    const itself = successor.agent === before.agent && successor.session === before.session;
    return compacted({
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
