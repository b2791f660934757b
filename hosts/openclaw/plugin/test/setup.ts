// What most tests begin with.
import { readSettings } from "../src/config.js";
import { Connection } from "../src/connection.js";
import { newEngine } from "../src/engine.js";
import type { ContextEngine, HostMessage, Logger } from "../src/host-types.js";
import type { Sdk } from "../src/sdk.js";
import { Shared } from "../src/shared.js";
import { FakeSidecar, type Answer } from "./fake-sidecar.js";

export interface Setup {
  sidecar: FakeSidecar;
  shared: Shared;
  engine: ContextEngine;
  log: string[];
  next: () => ContextEngine;
}

export function setup(answer: Answer, options: { config?: Record<string, unknown>; sdk?: Sdk; sidecar?: FakeSidecar; maxWeight?: number } = {}): Setup {
  const log: string[] = [];
  const logger: Logger = { info: (m) => log.push(m), warn: (m) => log.push(m), error: (m) => log.push(m) };
  const settings = readSettings({ engine: "composed", ...options.config }, {});
  const sidecar = options.sidecar ?? new FakeSidecar(answer);
  const connection = new Connection({ settings, env: {}, logger, open: sidecar.open });
  const shared = new Shared(settings, connection, logger, async () => options.sdk ?? {}, options.maxWeight);
  const next = (): ContextEngine => newEngine(shared, "openbrain", true);
  return { sidecar, shared, engine: next(), log, next };
}

export const session = { sessionId: "id-1", sessionKey: "agent:main:main" };
export const user = (text: string, more: HostMessage = {}): HostMessage => ({ role: "user", content: text, timestamp: 1, ...more });
export const assistant = (text: string, more: HostMessage = {}): HostMessage => ({ role: "assistant", content: [{ type: "text", text }], stopReason: "stop", ...more });

/** Lets everything that is ready run. */
export const settle = (): Promise<void> => new Promise((resolve) => { setImmediate(resolve); });
