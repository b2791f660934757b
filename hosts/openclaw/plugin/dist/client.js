// One connection to a sidecar: requests, answers, and the sidecar's own requests. It knows nothing of sockets and processes.
import { Code, OutOfTime, ProtocolError, Unavailable, textOf } from "./errors.js";
import { LineReader } from "./frames.js";
/** How long the sidecar is given to answer a cancellation, or its own deadline, before the plugin stops listening. */
const graceMs = 250;
const maxFrameBytes = 64 << 20;
const record = (value) => (typeof value === "object" && value !== null ? value : {});
/** Talks the protocol over a wire. The owner feeds it with data and tells it when the wire is closed. */
export class Client {
    wire;
    log;
    unresponsiveMs;
    #next = 1;
    #watch;
    #heard = true;
    #pinged = false;
    #closed;
    #pending = new Map();
    #asked = new Map();
    #reader;
    constructor(wire, log, 
    /** A sidecar that owes answers and says nothing for so long, not even to a ping, is taken for dead. In milliseconds. */
    unresponsiveMs = 60_000) {
        this.wire = wire;
        this.log = log;
        this.unresponsiveMs = unresponsiveMs;
        this.#reader = new LineReader(maxFrameBytes, (line) => { this.#frame(line); }, () => { this.log("warn", "a frame of the sidecar was too large and skipped"); });
    }
    data(bytes) {
        this.#heard = true;
        this.#reader.push(bytes);
    }
    /** Sees to it that a sidecar that hangs does not cost a call all of its time: one that works answers a ping whatever else it does. */
    #listen() {
        if (this.#watch || this.#closed || this.#pending.size === 0)
            return;
        this.#heard = this.#pinged = false;
        const look = () => {
            this.#watch = undefined;
            if (this.#heard || this.#pending.size === 0) {
                this.#listen();
            }
            else if (this.#pinged) {
                this.closed(`it hangs: nothing came from it for ${this.unresponsiveMs} ms`);
                this.wire.destroy();
            }
            else {
                this.#pinged = true;
                this.#send({ jsonrpc: "2.0", id: this.#next++, method: "ping" });
                this.#watch = after(look);
            }
        };
        // What has arrived is read before anybody is called dead.
        const after = (then) => setTimeout(() => { setImmediate(then); }, this.unresponsiveMs / 2);
        this.#watch = after(look);
    }
    /** Fails everything under way. */
    closed(cause) {
        if (this.#closed)
            return;
        this.#closed = new Unavailable(cause, true);
        clearTimeout(this.#watch);
        for (const call of this.#pending.values())
            call.settle({ error: this.#closed });
        for (const asked of this.#asked.values())
            asked.abort();
    }
    end() {
        this.wire.end();
    }
    /** Calls a method. It always settles, at the latest a little after timeoutMs. */
    call(method, params, options) {
        const { timeoutMs, signal } = options;
        if (this.#closed)
            return Promise.reject(this.#closed);
        if (signal?.aborted)
            return Promise.reject(abortError(signal));
        return new Promise((resolve, reject) => {
            const id = this.#next++;
            let grace;
            const giveUp = (error) => {
                this.#send({ jsonrpc: "2.0", method: "rpc.cancel", params: { id } });
                grace ??= setTimeout(() => { settle({ error }); }, graceMs);
            };
            const deadline = setTimeout(() => { giveUp(new OutOfTime(method, timeoutMs)); }, timeoutMs);
            const onAbort = () => { giveUp(abortError(signal)); };
            const settle = (outcome) => {
                if (!this.#pending.delete(id))
                    return;
                clearTimeout(deadline);
                clearTimeout(grace);
                signal?.removeEventListener("abort", onAbort);
                if ("result" in outcome)
                    resolve(outcome.result);
                else
                    reject(signal?.aborted ? abortError(signal) : outcome.error);
            };
            signal?.addEventListener("abort", onAbort, { once: true });
            this.#pending.set(id, { method, host: options.host, settle });
            this.#listen();
            this.#send({ jsonrpc: "2.0", id, method, params: { ...params, ...(method === "initialize" || method === "shutdown" ? {} : { deadlineMs: Math.ceil(timeoutMs) }) } });
        });
    }
    #send(frame) {
        if (this.#closed)
            return;
        try {
            this.wire.write(`${JSON.stringify(frame)}\n`);
        }
        catch (error) {
            this.closed(textOf(error));
        }
    }
    #frame(line) {
        let frame;
        try {
            frame = record(JSON.parse(line));
        }
        catch {
            this.log("warn", "the sidecar wrote something that is no frame");
            return;
        }
        const method = frame["method"];
        if (typeof method === "string") {
            if (frame["id"] !== undefined)
                void this.#answer(frame["id"], method, record(frame["params"]));
            else
                this.#notification(method, record(frame["params"]));
            return;
        }
        const pending = typeof frame["id"] === "number" ? this.#pending.get(frame["id"]) : undefined;
        if (!pending)
            return; // answered too late, or a complaint about a frame without an id
        if ("error" in frame) {
            const error = record(frame["error"]);
            const code = typeof error["code"] === "number" ? error["code"] : Code.internal;
            const message = typeof error["message"] === "string" ? error["message"] : `${pending.method} failed`;
            pending.settle({ error: new ProtocolError(code, message, record(error["data"])) });
        }
        else if ("result" in frame) {
            pending.settle({ result: frame["result"] });
        }
        else {
            pending.settle({ error: new ProtocolError(Code.internal, `${pending.method}: the sidecar's answer has neither result nor error`) });
        }
    }
    #notification(method, params) {
        if (method === "host.cancel" && typeof params["requestId"] === "string")
            this.#asked.get(params["requestId"])?.abort();
        if (method === "log" && typeof params["message"] === "string")
            this.log(String(params["level"]), params["message"]);
    }
    async #answer(id, method, params) {
        const call = typeof params["call"] === "number" ? this.#pending.get(params["call"]) : undefined;
        const requestId = typeof params["requestId"] === "string" ? params["requestId"] : "";
        const controller = new AbortController();
        this.#asked.set(requestId, controller);
        try {
            if (!call?.host)
                throw new ProtocolError(Code.missingCapability, `${method}: the call it belongs to has no host`);
            const result = await call.host(method, params, controller.signal);
            this.#send({ jsonrpc: "2.0", id, result });
        }
        catch (error) {
            const code = error instanceof ProtocolError ? error.code : controller.signal.aborted ? Code.cancelled : Code.internal;
            // The host's own error texts may hold anything; only the plugin's cross.
            const message = error instanceof ProtocolError ? error.message : `${method} failed`;
            this.#send({ jsonrpc: "2.0", id, error: { code, message } });
        }
        finally {
            this.#asked.delete(requestId);
        }
    }
}
function abortError(signal) {
    const reason = signal?.reason;
    if (reason instanceof Error)
        return reason;
    return new DOMException("This operation was aborted", "AbortError");
}
