// What the sidecar already has of a session's messages, so that a long list is not sent again with every call. Lists are compared by a hash of each
// message's JSON text. What the sidecar remembers may be lost at any time, and then everything is sent.
import { hash, randomBytes } from "node:crypto";
/** How many lists are remembered of either kind. */
const maxKnown = 3;
/** The longest list with a front that the host does not show. */
const longest = 20_000;
/** At least so many messages, and half of what the host shows, have to be known for a list to be the end of another. */
const leastOverlap = 8;
/** The hash of a message's JSON text. */
export const hashOf = (message) => hash("sha256", JSON.stringify(message), "base64url").slice(0, 32);
export const hashesOf = (messages) => messages.map(hashOf);
/** Reports whether list has part at an index. */
function has(list, part, at, from, length) {
    // From the end: where lists differ, they differ there.
    for (let i = length - 1; i >= 0; i--)
        if (list[at + i] !== part[from + i])
            return false;
    return true;
}
/** The lists of one session that the sidecar knows, the newest first. */
export class Memory {
    #known = [];
    #nonce = randomBytes(9).toString("base64url");
    #next = 0;
    /** How to tell the sidecar a list: what is behind the longest part that it knows. */
    plan(messages, hashes) {
        let best;
        for (const known of this.#known) {
            const found = match(known, hashes);
            if (found && found.covered > (best?.covered ?? 0))
                best = { known, ...found };
        }
        const digest = `${this.#nonce}.${this.#next++}`;
        if (!best)
            return { transcript: { messages, digest }, hashes, offset: 0, lead: 0 };
        const { known, offset, lead, covered } = best;
        const rest = lead + covered;
        return {
            transcript: { skipped: known.hashes.length, prefix: known.name, messages: messages.slice(rest), digest },
            hashes: rest === hashes.length ? known.hashes : [...known.hashes, ...hashes.slice(rest)],
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
    learn(hashes, name, output = false) {
        if (hashes.length === 0)
            return;
        const others = this.#known.filter((k) => k.name !== name);
        // A long tool loop must not push out what the host shows.
        const same = others.filter((k) => k.output === output).slice(0, maxKnown - 1);
        this.#known = [{ hashes, name, output }, ...same, ...others.filter((k) => k.output !== output)];
    }
    forget() {
        this.#known = [];
    }
}
/** Where a known list meets the host's: at the beginning of it, or its end, where the host shows only the newest part, maybe behind a message of its own. */
function match(known, hashes) {
    const { length } = known.hashes;
    if (length <= hashes.length && has(known.hashes, hashes, 0, 0, length))
        return { offset: 0, lead: 0, covered: length };
    if (known.output || length >= longest)
        return undefined;
    for (const lead of [0, 1]) {
        const first = hashes[lead];
        if (first === undefined)
            return undefined;
        for (let at = known.hashes.indexOf(first); at >= 0; at = known.hashes.indexOf(first, at + 1)) {
            const covered = length - at;
            if (at > lead && covered >= leastOverlap && 2 * covered >= hashes.length && lead + covered <= hashes.length && has(known.hashes, hashes, at, lead, covered)) {
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
    const out = [];
    for (const item of items) {
        if (typeof item?.from === "number" && typeof item.to === "number") {
            const [from, to] = [item.from - plan.offset, item.to - plan.offset];
            if (item.from < 0 || to <= from || to > list.length)
                throw new Error("the sidecar's answer refers to messages that are not there");
            if (from < plan.lead)
                throw new NotShown("the sidecar's answer refers to messages that the host does not show");
            for (const message of list.slice(from, to))
                out.push(message);
        }
        else if (typeof item?.message === "object" && item.message !== null && typeof item.message["role"] === "string") {
            out.push(item.message);
        }
        else {
            throw new Error("the sidecar's answer has an item that is no message");
        }
    }
    return out;
}
