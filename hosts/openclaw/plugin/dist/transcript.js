// What the sidecar already has of a session's messages, so that a long list is not sent again with every call. Lists are compared by a running hash of
// the messages' JSON text; what the sidecar remembers may be lost at any time, and then everything is sent.
import { createHash } from "node:crypto";
const maxKnown = 8;
const batch = 1 << 16;
/** The hashes of the first n messages of a list, for each n asked for. */
export class Hasher {
    #texts;
    /** known holds texts of messages that were written before. */
    constructor(messages, known) {
        this.#texts = messages.map((message) => known?.get(message) ?? JSON.stringify(message));
    }
    /** The JSON texts, by message. */
    texts(messages) {
        return new Map(messages.map((message, i) => [message, this.#texts[i] ?? ""]));
    }
    /** Hashes of the leading messages, by count. Counts beyond the list are left out. */
    at(counts) {
        const wanted = [...new Set(counts)].filter((n) => n <= this.#texts.length).sort((a, b) => a - b);
        const out = new Map();
        const hash = createHash("sha256");
        let text = "";
        let done = 0;
        for (const count of wanted) {
            for (; done < count; done++) {
                const message = this.#texts[done] ?? "";
                text += `${message.length}:${message}`;
                if (text.length > batch) {
                    hash.update(text);
                    text = "";
                }
            }
            hash.update(text);
            text = "";
            out.set(count, finish(hash.copy()));
        }
        return out;
    }
}
const finish = (hash) => hash.digest("base64url");
/** The lists of one session that the sidecar knows. */
export class Memory {
    #known = [];
    /** A transcript of the list behind the longest part that the sidecar knows. */
    plan(messages, hasher) {
        const hashes = hasher.at([...this.#known.map((k) => k.count), messages.length]);
        let best;
        for (const known of this.#known) {
            if (known.count > 0 && known.count > (best?.count ?? 0) && hashes.get(known.count) === known.hash)
                best = known;
        }
        const digest = hashes.get(messages.length) ?? "";
        if (!best)
            return { messages, digest };
        return { skipped: best.count, prefix: best.name, messages: messages.slice(best.count), digest };
    }
    /**
     * A transcript after the sidecar said that it needs more: behind the longest part that is true of the list and among the ones it named, else everything.
     * What it did not name is forgotten. A part that was refused already is not tried again.
     */
    replan(messages, hasher, named, refused) {
        const pairs = Array.isArray(named) ? named.filter(isPair) : [];
        const renamed = new Map(this.#known.map((k) => [k.name, k.hash]));
        this.#known = pairs
            .map(({ count, digest }) => ({ count, name: digest, hash: renamed.get(digest) ?? digest }))
            .filter((k) => !(k.count === refused.skipped && k.name === refused.prefix))
            .slice(0, maxKnown);
        return this.plan(messages, hasher);
    }
    /** Remembers a list that the sidecar has now. */
    learn(count, hash, name = hash) {
        this.#known = [{ count, hash, name }, ...this.#known.filter((k) => k.name !== name)].slice(0, maxKnown);
    }
    forget() {
        this.#known = [];
    }
}
function isPair(value) {
    const pair = value;
    return typeof pair === "object" && pair !== null && typeof pair.count === "number" && typeof pair.digest === "string";
}
/** Puts together the list that an answer with references stands for. Throws where it refers to what is not there. */
export function expand(items, list) {
    if (!Array.isArray(items))
        throw new Error("the sidecar's answer has no items");
    const out = [];
    for (const item of items) {
        if (typeof item?.from === "number" && typeof item.to === "number") {
            if (item.from < 0 || item.to <= item.from || item.to > list.length)
                throw new Error("the sidecar's answer refers to messages that are not there");
            for (const message of list.slice(item.from, item.to))
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
