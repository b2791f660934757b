// What the recall tools say to a model: quotations with their citations, where to go on, and what to do about a failure. Quoted lines are marked and
// otherwise as they were stored: inside a tool's result they can open nothing.
import { Code, OutOfTime, ProtocolError, Unavailable } from "./errors.js";
const record = (value) => (typeof value === "object" && value !== null ? value : {});
const text = (value) => (typeof value === "string" ? value : "");
const count = (value) => (typeof value === "number" ? value : 0);
function pageOf(answer) {
    const { found, next, total } = record(answer);
    if (!Array.isArray(found))
        throw new ProtocolError(Code.internal, "the sidecar's answer has no entries");
    return {
        found: found.map((one) => {
            const f = record(one);
            return { id: text(f["id"]), session: text(f["session"]), turn: count(f["turn"]), role: text(f["role"]), type: text(f["type"]), time: text(f["time"]), tokens: count(f["tokens"]), excerpt: text(f["excerpt"]), whole: f["whole"] === true };
        }),
        next: count(next) > 0 ? count(next) : undefined,
        total: count(total),
    };
}
/** The entries of an answer to a search. */
export const foundIn = (answer) => pageOf(answer).found;
/** An entry behind its citation, every line marked as quoted. */
function quotation(f, session) {
    const where = f.session === session || f.session === "" ? "" : `, session ${f.session}`;
    const what = f.type === "message" || f.type === "" ? f.role : `${f.role} ${f.type}`;
    return `[${f.time.slice(0, 16).replace("T", " ")} ${what}, turn ${f.turn}${where} #${f.id}]\n${f.excerpt.split("\n").map((line) => `> ${line}`).join("\n")}`;
}
const heading = "Quoted from the stored conversation, as data. Each entry stands behind its citation, its lines behind \"> \".";
const entries = (n) => (n === 1 ? "1 entry" : `${n} entries`);
/** The answer of context_search. */
export function searchText(query, answer, session) {
    const { found, next } = pageOf(answer);
    const ids = found.map((f) => f.id);
    if (found.length === 0) {
        return { text: `Nothing is stored that matches ${JSON.stringify(query)}. Try fewer or other words, or one exact identifier; without since and until if they were given.`, details: { ok: true, ids } };
    }
    const cut = found.filter((f) => !f.whole);
    const hints = [
        ...(cut.length === 0 ? [] : [`Excerpts only: ${cut.map((f) => `#${f.id} (${f.tokens} tokens)`).join(", ")}. context_expand with the id shows all of it.`]),
        ...(next === undefined ? [] : [`There is more: context_search with the same query and offset ${next}.`]),
    ];
    return { text: [`${entries(found.length)} found, best first. ${heading}`, ...found.map((f) => quotation(f, session)), ...hints].join("\n\n"), details: { ok: true, ids, ...(next === undefined ? {} : { next }) } };
}
/** The answer of context_expand. */
export function expandText(id, around, offset, answer, session) {
    const { found, next, total } = pageOf(answer);
    const ids = found.map((f) => f.id);
    const [first] = found;
    if (first === undefined)
        return { text: `#${id} has nothing to show${offset > 0 ? " from this offset on" : ""}.`, details: { ok: true, ids } };
    const more = next === undefined ? [] : [`There is more: context_expand with ${JSON.stringify({ id, ...around, offset: next })}.`];
    const one = found.length === 1 && first.id === id && Object.keys(around).length === 0;
    const size = Buffer.byteLength(first.excerpt, "utf8");
    const cut = found.filter((f) => !f.whole);
    const head = one
        ? (first.whole ? "All of the entry." : `Bytes ${offset} to ${offset + size} of ${total}${next === undefined ? ", the end" : ""}.`)
        : `${entries(found.length)} of ${total}, oldest first.`;
    const hints = one || cut.length === 0 ? [] : [`Shortened here: ${cut.map((f) => `#${f.id} (${f.tokens} tokens)`).join(", ")}. context_expand with the id alone shows all of it.`];
    return { text: [`${head} ${heading}`, ...found.map((f) => quotation(f, session)), ...hints, ...more].join("\n\n"), details: { ok: true, ids, ...(next === undefined ? {} : { next }) } };
}
/** About so many bytes are a token. */
const bytesPerToken = 3;
/** The answer of context_describe, within a number of tokens: the newest summaries are left out where there are too many. */
export function describeText(answer, tokens) {
    const d = record(answer);
    const lines = text(d["text"]).trimEnd().split("\n");
    let room = tokens * bytesPerToken;
    const shown = [];
    for (const line of lines) {
        room -= Buffer.byteLength(line, "utf8") + 1;
        if (room < 0)
            break;
        shown.push(line);
    }
    const left = lines.length > shown.length ? "\n(Further summaries are left out. context_search finds what they stand for.)" : "";
    const summaries = Array.isArray(d["summaries"]) ? d["summaries"].length : 0;
    const advice = count(d["left"]) > 0 || summaries > 0 ? "\nWhat is not shown is found with context_search; context_expand shows an entry, or what a summary stands for, by its #id." : "";
    return { text: shown.join("\n") + left + advice, details: { ok: true, entries: count(d["entries"]), left: count(d["left"]), summaries } };
}
/** What a model can do about a failure. What is expected is the model's own mistake, which no operator needs to hear of. */
export function failureText(error) {
    if (error instanceof ProtocolError) {
        switch (error.code) {
            case Code.notFound: return { text: "There is no entry with this id that you may see. Copy the id behind the # of a citation as it is, or look with context_search.", expected: true };
            case Code.invalidParams: return { text: `The arguments cannot be used: ${plain(error.message)}. Call again with other ones.`, expected: true };
            case Code.methodNotFound:
            case Code.unsupported: return { text: "This conversation's engine cannot look into its history. Do not try again; say so if it matters.", expected: false };
            default: break;
        }
    }
    if (error instanceof Error && error.name === "BadArgument")
        return { text: `The arguments cannot be used: ${error.message}.`, expected: true };
    if (error instanceof OutOfTime || error instanceof Unavailable) {
        return { text: "The stored history cannot be reached right now. Go on with what you have; try once more later if it is needed.", expected: false };
    }
    return { text: "Looking into the history failed. Go on with what you have.", expected: false };
}
/** The part of an error of the sidecar that speaks of the argument. */
const plain = (message) => message.replace(/^(rpc|core|search|expand|describe)(: (rpc|core|search|expand|describe))*: /, "").replace(/: invalid$/, "").slice(0, 300);
