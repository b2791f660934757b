// What is remembered of a message, to know it again without hashing it: hosts hand over copies of the same thousands of messages with every call, and
// change them in place when they like. So nothing is taken from an object's identity: its values are compared with those of the last time.
import { hash } from "node:crypto";
/** What stands in a list of values where an object or an array begins and ends. */
const objectBegin = Symbol("{");
const arrayBegin = Symbol("[");
const end = Symbol("end");
/** Thrown at values whose JSON text does not follow from their parts. */
const notPlain = new Error("not plain");
/** The hash of a message's JSON text. */
export const hashOf = (message) => hash("sha256", JSON.stringify(message), "base64url").slice(0, 32);
export function printOf(message) {
    const made = hashOf(message);
    const values = [];
    try {
        const weight = spread(message, values);
        return { hash: made, values, weight, counted: 0 };
    }
    catch (error) {
        if (error !== notPlain)
            throw error;
        return { hash: made, values: undefined, weight: 0, counted: 0 };
    }
}
/** Prints of a list. Those of the last list are taken where they still say the same. */
export function printsOf(messages, last = []) {
    const out = [];
    let places;
    let at = 0;
    for (const message of messages) {
        const expected = last[at];
        if (expected?.values !== undefined && holds(message, expected.values)) {
            out.push(expected);
            at++;
            continue;
        }
        const made = printOf(message);
        out.push(made);
        places ??= new Map(last.map((print, i) => [print.hash, i]));
        const found = expected?.hash === made.hash ? at : places.get(made.hash);
        // What was not there before stands in place of what was expected, unless the next one says that it was put in front of it.
        at = 1 + (found ?? at);
    }
    return out;
}
/** Reports whether two prints are of messages with the same JSON text. */
export const alike = (a, b) => a === b || (a !== undefined && a.hash === b?.hash);
/** Appends the values of one to values, and returns about how many bytes they are. */
function spread(value, values) {
    switch (typeof value) {
        case "string":
            values.push(value);
            return 16 + value.length;
        case "number":
        case "boolean":
        case "undefined":
            values.push(value);
            return 8;
        case "object":
            break;
        default:
            throw notPlain;
    }
    if (value === null) {
        values.push(value);
        return 8;
    }
    let weight = 16;
    if (Array.isArray(value)) {
        if ("toJSON" in value)
            throw notPlain;
        values.push(arrayBegin);
        for (const one of value)
            weight += spread(one, values);
    }
    else {
        if (!isPlain(value))
            throw notPlain;
        values.push(objectBegin);
        for (const key in value) {
            values.push(key);
            weight += 8 + spread(value[key], values);
        }
    }
    values.push(end);
    return weight;
}
function isPlain(value) {
    const prototype = Object.getPrototypeOf(value);
    return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}
/** Reports whether a message has exactly these values. */
function holds(message, values) {
    return compare(message, values, 0) === values.length;
}
/** Compares a value with those from an index on. Returns the index behind it, or -1 where they differ. */
function compare(value, values, at) {
    if (typeof value !== "object" || value === null)
        return value === values[at] ? at + 1 : -1;
    if (Array.isArray(value)) {
        if (values[at++] !== arrayBegin || "toJSON" in value)
            return -1;
        for (const one of value)
            if ((at = compare(one, values, at)) < 0)
                return -1;
    }
    else {
        if (values[at++] !== objectBegin || !isPlain(value))
            return -1;
        for (const key in value) {
            if (values[at++] !== key || (at = compare(value[key], values, at)) < 0)
                return -1;
        }
    }
    return values[at] === end ? at + 1 : -1;
}
