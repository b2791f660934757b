// What can go wrong between plugin and sidecar. Texts hold no contents of messages, keys or tokens.
import { PACKAGE } from "./names.js";
/** The codes of the protocol that the plugin looks at. */
export const Code = {
    methodNotFound: -32601,
    invalidParams: -32602,
    internal: -32603,
    deadline: -32096,
    cancelled: -32097,
    needTranscript: -32010,
    budget: -32011,
    notFound: -32013,
    missingCapability: -32016,
    unsupported: -32017,
    configuration: -32018,
};
/** Errors that are told apart by their names: the host may load this module more than once in a process, and the connection is shared by all of them. */
class Named extends Error {
    static [Symbol.hasInstance](value) {
        return value instanceof Object && value.name === this.name;
    }
}
/** An error that the sidecar answered with, or that the plugin answers the sidecar with. */
export class ProtocolError extends Named {
    code;
    data;
    name = "ProtocolError";
    constructor(code, message, data = {}) {
        super(message);
        this.code = code;
        this.data = data;
    }
}
/** There is no sidecar to talk to, or it went away in the middle of a call. Calling again later may help. */
export class Unavailable extends Named {
    lost;
    name = "Unavailable";
    constructor(cause, lost = false) {
        super(`${PACKAGE}: sidecar not available: ${cause}`);
        this.lost = lost;
    }
}
/** A call was out of time. */
export class OutOfTime extends Named {
    name = "OutOfTime";
    constructor(method, ms) {
        super(`${PACKAGE}: ${method}: no answer from the sidecar within ${ms} ms`);
    }
}
export function textOf(error) {
    return error instanceof Error ? error.message : String(error);
}
