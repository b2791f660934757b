// A sidecar for tests: a channel whose other end is a function. It stores turns as the real one does and knows transcripts.
import type { Channel } from "../src/launch.js";

export type Params = Record<string, unknown>;
export type Answer = (method: string, params: Params, id: number, sidecar: FakeSidecar) => unknown;

/** An error that the sidecar answers with. */
export class Refusal extends Error {
  constructor(readonly code: number, readonly data: Params = {}, message = "refused") {
    super(message);
  }
}

/** Never answers. */
export const silence = Symbol("silence");

export class FakeSidecar {
  readonly received: { method: string; params: Params }[] = [];
  readonly text: string[] = [];
  opened = 0;
  methods = ["factory"];
  #emit: ((bytes: Buffer) => void) | undefined;
  #closed: ((cause: string) => void) | undefined;
  #waiting = new Map<string, (answer: Params) => void>();
  #asked = 0;

  constructor(public answer: Answer = () => ({})) {}

  /** A new connection to this sidecar. */
  open = (): Channel => {
    this.opened++;
    let closed: (cause: string) => void = () => undefined;
    let over: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => { over = resolve; });
    const close = (cause: string): void => {
      over();
      closed(cause);
    };
    this.#closed = close;
    return {
      write: (text) => {
        this.text.push(text);
        for (const line of text.split("\n").filter((l) => l !== "")) this.#take(JSON.parse(line) as Params);
      },
      end: () => { close("ended"); },
      destroy: () => { close("destroyed"); },
      onData: (listener) => { this.#emit = listener; },
      onClose: (listener) => { closed = listener; },
      gone,
    };
  };

  /** Breaks the connection. */
  die(cause = "killed"): void {
    this.#closed?.(cause);
  }

  say(text: string): void {
    this.#emit?.(Buffer.from(text));
  }

  /** Asks the host something, as part of a call. */
  ask(method: string, params: Params): Promise<Params> {
    const id = `a${++this.#asked}`;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.say(`${JSON.stringify({ jsonrpc: "2.0", id, method, params: { requestId: `h-${id}`, ...params } })}\n`);
    });
  }

  calls(method: string): Params[] {
    return this.received.filter((c) => c.method === method).map((c) => c.params);
  }

  #take(frame: Params): void {
    if (typeof frame["method"] !== "string") {
      this.#waiting.get(String(frame["id"]))?.(frame);
      return;
    }
    const { method } = frame;
    const params = (frame["params"] ?? {}) as Params;
    this.received.push({ method, params });
    if (frame["id"] === undefined) return;
    const id = frame["id"] as number;
    void (async () => {
      let body: Params;
      try {
        const result = await (method === "initialize" ? { protocolVersion: "1", methods: this.methods, engine: { id: "composed", ownsCompaction: true } } : this.answer(method, params, id, this));
        if (result === silence) return;
        body = { result };
      } catch (error) {
        body = { error: { code: error instanceof Refusal ? error.code : -32603, message: error instanceof Refusal ? error.message : "refused", data: error instanceof Refusal ? error.data : {} } };
      }
      this.say(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
    })();
  }
}
