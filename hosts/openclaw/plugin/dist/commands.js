// The chat command: what people ask about a conversation's context, and what they can do. Answers are plain sentences; what goes wrong is said with what to do about it.
// Nothing here is secret: no addresses, keys or host configuration, and of conversations only what was said in the one that is asked about.
import { foundIn } from "./answers.js";
import { lacksCredentials } from "./config.js";
import { adviceFor, installationProblems } from "./doctor.js";
import { Code, ProtocolError, textOf } from "./errors.js";
import { COMMAND, MISSING_CREDENTIALS, PACKAGE } from "./names.js";
import { sessionOf } from "./whitelist.js";
/** How many entries a search shows, how many it looks through for those of this conversation, and what they may cost in tokens. */
const mostShown = 5;
const mostFound = 20;
const searchTokens = 8_000;
/** So much of an entry is shown, in characters. */
const mostCharacters = 400;
const usage = [
    `/${COMMAND} status - what is stored of this conversation, and what the model is shown`,
    `/${COMMAND} doctor - whether the context engine works, and what to do if it does not`,
    `/${COMMAND} search <words> - find what was said in this conversation`,
    `/${COMMAND} compact - make room in the model's window now`,
    `/${COMMAND} retry - let a context engine that was set aside try again`,
].join("\n");
const record = (value) => (typeof value === "object" && value !== null ? value : {});
const text = (value) => (typeof value === "string" ? value : "");
const count = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const many = (n, one, more = `${one}s`) => `${n.toLocaleString("en-US")} ${n === 1 ? one : more}`;
const sentence = (words) => (/[.!?]$/.test(words) ? words : `${words}.`);
const minute = (time) => text(time).slice(0, 16).replace("T", " ");
/** The command as it is registered. ids are those of the engine, config is the host's configuration at registration. */
export function chatCommand(shared, ids, config) {
    return {
        name: COMMAND,
        description: "Context engine: status, doctor, search <words>, compact, retry",
        acceptsArgs: true,
        requireAuth: true,
        handler: async (context) => ({ text: withoutKey(shared, await answer(shared, ids, { ...context, config: context.config ?? record(config) })) }),
    };
}
async function answer(shared, ids, context) {
    const [, word = "", rest = ""] = /^\s*(\S*)\s*([\s\S]*)$/.exec(context.args ?? "") ?? [];
    const what = word.toLowerCase();
    if (what === "" || what === "help")
        return usage;
    if (!["status", "doctor", "search", "compact", "retry"].includes(what))
        return `There is no /${COMMAND} ${word.slice(0, 40)}. There are:\n${usage}`;
    const problems = installationProblems(context.config, ids);
    const key = context.sessionKey ?? context.sessionTarget?.sessionKey ?? "";
    const agentId = context.agentId ?? context.sessionTarget?.agentId;
    const session = key === "" ? undefined : sessionOf({ sessionId: context.sessionId ?? "", sessionKey: key, ...(agentId === undefined ? {} : { agentId }) });
    if (what === "doctor")
        return doctor(shared, session, problems);
    if (problems.length > 0)
        return `The context engine is installed, but not used: ${problems.map(sentence).join(" ")}`;
    if (lacksCredentials(shared.settings))
        return sentence(MISSING_CREDENTIALS);
    if (session === undefined)
        return "This chat has no conversation yet. Send a message first.";
    try {
        if (what === "status")
            return await status(shared, session);
        if (what === "search")
            return await search(shared, session, rest.trim());
        if (what === "retry")
            return await retry(shared, session);
        return await compact(shared, session, context);
    }
    catch (error) {
        return failure(what, error);
    }
}
const call = (shared, session, method, fields = {}, timeoutMs = shared.settings.timeouts.call) => shared.call(session, method, { session, ...fields }, { timeoutMs });
/** What an engine is made of. */
function engineText(info, delegates) {
    const engine = record(record(info)["engine"]);
    const { store, retriever, compactor } = record(engine["parts"]);
    const parts = [["store", store], ["retriever", retriever], ["compactor", compactor]].filter(([, name]) => text(name) !== "").map(([what, name]) => `${text(what)} ${text(name)}`);
    const arm = text(record(record(info)["arm"])["name"]);
    const compacts = delegates || engine["ownsCompaction"] === false ? "the host compacts" : "the engine compacts";
    return `${text(engine["id"]) || "unknown"}${parts.length > 0 ? ` (${parts.join(", ")})` : ""}${arm === "" ? "" : `, arm ${arm}`}; ${compacts}`;
}
function conversationText(description) {
    const d = record(description);
    if (count(d["entries"]) === 0)
        return "nothing is stored of it yet";
    const summaries = Array.isArray(d["summaries"]) ? d["summaries"].length : 0;
    return [
        `${many(count(d["entries"]), "message")} in ${many(count(d["turns"]), "turn")}, ${minute(d["first"])} to ${minute(d["last"])}`,
        `${many(count(d["shown"]), "message")} shown to the model`,
        ...(count(d["shortened"]) > 0 ? [`${count(d["shortened"])} of them shortened`] : []),
        ...(summaries > 0 ? [many(summaries, "summary", "summaries")] : []),
        ...(count(d["left"]) > 0 ? [`${count(d["left"])} stored but not shown`] : []),
    ].join("; ");
}
async function keptTurns(shared, session) {
    let kept = 0;
    for (const one of session === undefined ? await shared.owed.sessions() : [session])
        kept += (await shared.owed.of(one)).length;
    return kept;
}
async function status(shared, session) {
    const health = shared.healthOf(session);
    const kept = await keptTurns(shared, session).catch(() => 0);
    const budget = shared.state(session).budget.now();
    const lines = health.out
        ? [`The engine is out of order since ${many(Math.ceil(health.lasted() / 1000), "second")}: ${health.failing.join(", ")}. ${shared.settings.failure === "strict" ? "Failure is strict: nothing stands in for it." : "Turns are answered with the newest messages that fit."} /${COMMAND} doctor says what to do.`]
        : ["The engine works."];
    try {
        lines.push(`Engine: ${engineText(await call(shared, session, "info"), shared.settings.ownsCompaction === false)}.`);
        lines.push(`This conversation: ${conversationText(await call(shared, session, "describe"))}.`);
    }
    catch (error) {
        if (health.out)
            lines.push(failure("status", error));
        else
            lines.splice(0, 1, failure("status", error));
    }
    if (budget !== undefined)
        lines.push(`A prompt may cost ${many(budget, "token")}.`);
    if (kept > 0)
        lines.push(`${many(kept, "turn")} of this conversation ${kept === 1 ? "is" : "are"} kept on disk and stored when the engine is back.`);
    return lines.join("\n");
}
async function search(shared, session, query) {
    if (query === "")
        return `Say what to look for: /${COMMAND} search <words>`;
    const all = foundIn(await call(shared, session, "search", { query, limit: mostFound, tokens: searchTokens }));
    // A chat may have other readers than the agent's other conversations.
    const own = all.filter((one) => one.session === session.session || one.session === "");
    // The host keeps what was typed, this command too.
    const found = own.filter((one) => !one.excerpt.startsWith(`/${COMMAND}`));
    const others = all.length > own.length ? `\n\nOther conversations of this agent have matches too. They are not shown here.` : "";
    if (found.length === 0)
        return `Nothing in this conversation matches ${JSON.stringify(query)}. Try fewer or other words.${others}`;
    const shown = found.slice(0, mostShown);
    const head = `${found.length > shown.length ? `The best ${shown.length} matches` : many(found.length, "match", "matches")}:`;
    return [head, ...shown.map(quotation)].join("\n\n") + others;
}
function quotation(one) {
    const cut = Array.from(one.excerpt).slice(0, mostCharacters).join("").trimEnd();
    const who = one.type === "message" || one.type === "" ? one.role : one.type;
    return `${minute(one.time)}, ${who}, turn ${one.turn} (#${one.id})\n${cut.split("\n").map((line) => `> ${line}`).join("\n")}${cut.length < one.excerpt.trimEnd().length || !one.whole ? " ..." : ""}`;
}
/** Reasons that are no failure. */
const benign = /below.threshold|already.under.target|already.compacted|nothing to compact|no real conversation/i;
async function compact(shared, session, context) {
    const budget = shared.state(session).budget.now();
    // The host's way first: it ends a run that is under way, and keeps its own count.
    const host = context.runtimeContext?.compactCurrent;
    const done = record(host ? await host() : await call(shared, session, "compact", { force: true, trigger: "manual", ...(budget === undefined ? {} : { tokenBudget: budget }) }, shared.settings.timeouts.compact));
    const [before, after] = [count(done["tokensBefore"]), count(done["tokensAfter"])];
    const reason = text(done["reason"]);
    if (done["compacted"] === true)
        return before > 0 ? `Compacted: ${many(before, "token")} before, ${after.toLocaleString("en-US")} after. Everything is still stored and can be found.` : "Compacted. Everything is still stored and can be found.";
    if (reason === "" || benign.test(reason))
        return `Nothing to compact${reason === "" ? "" : `: ${sentence(reason)}`}${reason === "" ? "." : ""}`;
    return `Not compacted: ${sentence(reason)} /${COMMAND} doctor says what to do.`;
}
async function retry(shared, session) {
    const before = await keptTurns(shared, session);
    await shared.retry(session);
    const stored = before - await keptTurns(shared, session);
    return `The context engine was asked to try again, and works.${stored > 0 ? ` ${many(stored, "turn")} of this conversation that ${stored === 1 ? "was" : "were"} kept ${stored === 1 ? "is" : "are"} stored.` : ""}`;
}
async function doctor(shared, session, problems) {
    const { settings, connection } = shared;
    const findings = [];
    const good = (words) => void findings.push({ ok: true, text: sentence(words) });
    const bad = (words) => void findings.push({ ok: false, text: sentence(words) });
    // Straight to the sidecar: an engine that is left alone for a while is asked all the same.
    const ask = (method, fields) => connection.call(method, fields, { timeoutMs: settings.timeouts.call });
    const attempt = async (what, check) => {
        try {
            await check();
            return true;
        }
        catch (error) {
            bad(failure(what, error));
            return false;
        }
    };
    for (const problem of problems)
        bad(`Not used: ${problem}`);
    if (problems.length === 0)
        good("The plugin is enabled, and the host's slot names its engine");
    if (lacksCredentials(settings))
        bad(MISSING_CREDENTIALS);
    else if (problems.length === 0) {
        const reached = await attempt("Reaching the sidecar", async () => {
            const health = record(await ask("health", {}));
            good(`The sidecar answers: version ${text(health["version"]) || "unknown"}, running for ${many(Math.floor(count(health["uptimeMs"]) / 60_000), "minute")}`);
            for (const one of (Array.isArray(health["problems"]) ? health["problems"] : []).map(record)) {
                bad(`${text(one["part"])}: ${text(one["op"])}: ${text(one["text"])} (${many(count(one["count"]), "time")} since ${minute(one["since"])})${one["quarantined"] === true ? `; the engine is set aside: /${COMMAND} retry lets it try again` : ""}`);
            }
        });
        if (reached && session !== undefined) {
            const made = await attempt("Making the engine", async () => { good(`The engine is ${engineText(await ask("info", { session }), settings.ownsCompaction === false)}`); });
            if (made)
                await attempt("Reading this conversation", async () => { good(`This conversation can be read: ${conversationText(await ask("describe", { session }))}`); });
        }
        const health = session === undefined ? shared.health("main") : shared.healthOf(session);
        if (health.out)
            bad(`Out of order since ${many(Math.ceil(health.lasted() / 1000), "second")}: ${health.failing.join(", ")}. It is tried again with the next turn`);
    }
    await attempt("Looking for turns that wait to be stored", async () => {
        const kept = await keptTurns(shared);
        if (kept > 0)
            bad(`${many(kept, "turn")} ${kept === 1 ? "waits" : "wait"} on disk to be stored. That happens by itself when the engine works; nothing is lost`);
        else
            good("No turn waits to be stored");
    });
    const wrong = findings.filter((one) => !one.ok).length;
    const head = wrong === 0 ? "All is well." : `${many(wrong, "thing")} to look at.`;
    return [head, ...findings.map((one) => `${one.ok ? "ok" : "!!"}  ${one.text}`), ...(wrong === 0 ? [] : ["More, on the gateway's machine: contextengine doctor --openclaw"])].join("\n");
}
/** What failed, why, and what to do. */
function failure(what, error) {
    const advice = adviceFor(error) || adviceForPeople(error);
    return `${what} failed: ${sentence(textOf(error).replace(`${PACKAGE}: `, "").slice(0, 500))} What to do: ${sentence(advice)}`;
}
function adviceForPeople(error) {
    if (error instanceof ProtocolError && (error.code === Code.unsupported || error.code === Code.methodNotFound))
        return "this engine cannot do that; choose another one, or do without";
    return `look for lines of ${PACKAGE} in the gateway's log`;
}
/** Errors hold no keys by contract; what is shown in a chat does not rely on it. */
function withoutKey({ settings }, words) {
    return settings.apiKey === "" ? words : words.replaceAll(settings.apiKey, "(key)");
}
