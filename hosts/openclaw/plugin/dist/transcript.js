// What the sidecar already has of a session's messages, so that a long list is not sent again with every call. Lists are compared by prints of their
// messages. What the sidecar remembers may be lost at any time, and then everything is sent.
import { randomBytes } from "node:crypto";
import { alike, printsOf } from "./prints.js";
/** How many lists are remembered of either kind. */
const maxKnown = 3;
/** The longest list with a front that the host does not show. */
const longest = 20_000;
/** At least so many messages, and half of what the host shows, have to be known for a list to be the end of another. */
const leastOverlap = 8;
/** Reports whether list has part at an index. */
function has(list, part, at, from, length) {
    // From the end: where lists differ, they differ there.
    for (let i = length - 1; i >= 0; i--)
        if (!alike(list[at + i], part[from + i]))
            return false;
    return true;
}
/** The lists of one session that the sidecar knows, the newest first. */
export class Memory {
    #known = [];
    #nonce = randomBytes(9).toString("base64url");
    #next = 0;
    #count = 0;
    /** Prints of a list, compared with the newest of its kind: only what is new or was changed is hashed. */
    prints(messages, output = false) {
        return printsOf(messages, this.#known.find((k) => k.output === output)?.prints);
    }
    /** About how many bytes of messages are kept to compare with. */
    weight() {
        const count = ++this.#count;
        let sum = 0;
        for (const { prints } of this.#known) {
            for (const print of prints) {
                if (print.values === undefined || print.counted === count)
                    continue;
                print.counted = count;
                sum += print.weight;
            }
        }
        return sum;
    }
    /** Keeps hashes alone: the next call hashes everything once. */
    lighten() {
        for (const { prints } of this.#known)
            for (const print of prints)
                print.values = undefined;
    }
    /** How to tell the sidecar a list: what is behind the longest part that it knows. */
    plan(messages, prints) {
        let best;
        for (const known of this.#known) {
            const found = match(known, prints);
            if (found && found.covered > (best?.covered ?? 0))
                best = { known, ...found };
        }
        const digest = `${this.#nonce}.${this.#next++}`;
        if (!best)
            return { transcript: { messages, digest }, prints, offset: 0, lead: 0 };
        const { known, offset, lead, covered } = best;
        const rest = lead + covered;
        return {
            transcript: { skipped: known.prints.length, prefix: known.name, messages: messages.slice(rest), digest },
            prints: rest === prints.length ? known.prints : [...known.prints, ...prints.slice(rest)],
            offset,
            lead,
        };
    }
    /** After the sidecar said that it needs more: forgets the lists that it did not name, and the one that it refused. */
    refused(named, transcript) {
        const names = new Set(Array.isArray(named) ? named.map((pair) => pair?.digest) : []);
        this.#known = this.#known.filter((k) => names.has(k.name) && k.name !== transcript.prefix);
    }
    /** Remembers a list that the sidecar has now. */
    learn(prints, name, output = false) {
        if (prints.length === 0)
            return;
        const others = this.#known.filter((k) => k.name !== name);
        // A long tool loop must not push out what the host shows.
        const same = others.filter((k) => k.output === output).slice(0, maxKnown - 1);
        this.#known = [{ prints, name, output }, ...same, ...others.filter((k) => k.output !== output)];
    }
    forget() {
        this.#known = [];
    }
}
/** Where a known list meets the host's: at the beginning of it, or its end, where the host shows only the newest part, maybe behind a message of its own. */
function match(known, prints) {
    const { length } = known.prints;
    if (length <= prints.length && has(known.prints, prints, 0, 0, length))
        return { offset: 0, lead: 0, covered: length };
    if (known.output || length >= longest)
        return undefined;
    for (const lead of [0, 1]) {
        const first = prints[lead];
        if (first === undefined)
            return undefined;
        for (let at = lead + 1; at < length; at++) {
            const covered = length - at;
            if (covered < leastOverlap || 2 * covered < prints.length)
                break;
            if (lead + covered <= prints.length && alike(known.prints[at], first) && has(known.prints, prints, at, lead, covered)) {
                return { offset: at - lead, lead, covered };
            }
        }
    }
    return undefined;
}
/** The sidecar referred to a message that the host does not show any more. */
export class NotShown extends Error {
    name = "NotShown";
}
/** Puts together the list that an answer with references stands for. Throws where it refers to what is not there. */
export function expand(items, list, plan = { offset: 0, lead: 0 }) {
    if (!Array.isArray(items))
        throw new Error("the sidecar's answer has no items");
    const out = { messages: [], places: [] };
    for (const item of items) {
        if (typeof item?.from === "number" && typeof item.to === "number") {
            const [from, to] = [item.from - plan.offset, item.to - plan.offset];
            if (item.from < 0 || to <= from || to > list.length)
                throw new Error("the sidecar's answer refers to messages that are not there");
            if (from < plan.lead)
                throw new NotShown("the sidecar's answer refers to messages that the host does not show");
            list.slice(from, to).forEach((message, i) => {
                out.messages.push(message);
                out.places.push(from + i);
            });
        }
        else if (typeof item?.message === "object" && item.message !== null && typeof item.message["role"] === "string") {
            out.messages.push(item.message);
            out.places.push(-1);
        }
        else {
            throw new Error("the sidecar's answer has an item that is no message");
        }
    }
    return out;
}
