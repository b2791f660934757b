import { hashOf } from "./prints.js";
import { clip, weigh } from "./weigh.js";
/** How much of the budget is used when the beginning moves: it then stays where it is for some turns, and what was sent is sent again. */
const share = 0.75;
/** Cuts the lists of one session. It remembers where the last one began. */
export class Cut {
    #first;
    /** The newest part of a list that costs at most budget tokens; empty where nothing fits. */
    newest(messages, budget) {
        let lead = messages.findIndex((message) => !isLead(message));
        if (lead < 0)
            lead = messages.length;
        const leading = within(messages.slice(0, lead), budget);
        const room = budget - leading.reduce((sum, message) => sum + weigh(message), 0);
        const groups = groupsOf(messages, lead);
        const [start, rest] = this.#start(messages, groups, room);
        if (rest !== undefined)
            return [...leading, ...rest];
        // Nothing is left out: the host's own list.
        return start === lead && leading.length === lead ? [...messages] : [...leading, ...messages.slice(start)];
    }
    /** Where the shown part begins; or the messages themselves, where not even the newest turn fits. */
    #start(messages, groups, room) {
        const [first] = groups;
        if (first === undefined)
            return [messages.length];
        const fits = (most) => {
            let sum = 0;
            let found;
            for (const group of [...groups].reverse()) {
                sum += group.cost;
                if (sum > most)
                    break;
                if (group.opens)
                    found = group.at;
            }
            return found;
        };
        if (groups.reduce((sum, group) => sum + group.cost, 0) <= room)
            return [first.at];
        const longest = fits(room);
        if (longest === undefined)
            return [messages.length, torn(messages, groups, room)];
        const hash = (at) => hashOf(messages[at] ?? {});
        const last = groups.find((group) => group.at >= longest && group.opens && hash(group.at) === this.#first);
        if (last)
            return [last.at];
        const start = fits(room * share) ?? longest;
        this.#first = hash(start);
        return [start];
    }
}
/** Reports whether a message stands in front of the conversation. */
const isLead = (message) => message["role"] === "system" || message["role"] === "compactionSummary" || message["role"] === "branchSummary";
/** The leading messages that fit: system messages first, and then the newest. */
function within(leading, budget) {
    let room = budget;
    const kept = new Set();
    for (const message of [...leading.filter((m) => m["role"] === "system"), ...leading.filter((m) => m["role"] !== "system").reverse()]) {
        const cost = weigh(message);
        if (cost > room)
            continue;
        room -= cost;
        kept.add(message);
    }
    return leading.filter((message) => kept.has(message));
}
function groupsOf(messages, from) {
    const out = [];
    for (let at = from; at < messages.length; at++) {
        const message = messages[at] ?? {};
        const last = out.at(-1);
        // Results belong to the call in front of them.
        if (message["role"] === "toolResult" && last && !last.opens)
            last.cost += weigh(message);
        else
            out.push({ at, cost: weigh(message), opens: message["role"] === "user" });
    }
    return out;
}
/** The newest turn, which does not fit: the message that opens it, and the newest of its groups. What is too long for its place is clipped. */
function torn(messages, groups, room) {
    const at = groups.findLastIndex((group) => group.opens);
    const opener = groups[at];
    if (!opener)
        return [];
    const alone = at === groups.length - 1;
    const first = clip(messages[opener.at] ?? {}, alone ? room : Math.floor(room / 3));
    if (!first)
        return [];
    let left = room - weigh(first);
    let start = messages.length;
    for (const group of groups.slice(at + 1).reverse()) {
        if (group.cost > left)
            break;
        left -= group.cost;
        start = group.at;
    }
    if (start < messages.length || alone)
        return [first, ...messages.slice(start)];
    return [first, ...clippedGroup(messages.slice(groups.at(-1)?.at), left)];
}
/** A group with its results cut down to what there is room for; nothing where that does not do. */
function clippedGroup(group, room) {
    const [call, ...results] = group;
    if (call === undefined)
        return [];
    const head = results.length === 0 ? clip(call, room) : weigh(call) <= room ? call : undefined;
    if (!head)
        return [];
    let left = room - weigh(head);
    const out = [head];
    for (const [i, result] of results.entries()) {
        const cut = clip(result, Math.floor(left / (results.length - i)));
        if (!cut)
            return [];
        left -= weigh(cut);
        out.push(cut);
    }
    return out;
}
