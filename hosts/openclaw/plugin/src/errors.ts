// What can go wrong between plugin and sidecar. Texts hold no contents of messages, keys or tokens.
import { MISSING_CREDENTIALS, PACKAGE } from "./names.js";

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
  quarantined: -32019,
} as const;

/** Errors that are told apart by their names: the host may load this module more than once in a process, and the connection is shared by all of them. */
class Named extends Error {
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Object && (value as { name?: unknown }).name === this.name;
  }
}

/** An error that the sidecar answered with, or that the plugin answers the sidecar with. */
export class ProtocolError extends Named {
  override readonly name = "ProtocolError";
  constructor(readonly code: number, message: string, readonly data: Readonly<Record<string, unknown>> = {}) {
    super(message);
  }
}

/** There is no sidecar to talk to, or it went away in the middle of a call. Calling again later may help. */
export class Unavailable extends Named {
  override readonly name = "Unavailable";
  constructor(cause: string, readonly lost = false) {
    super(`${PACKAGE}: sidecar not available: ${cause}`);
  }
}

/** A call was out of time. */
export class OutOfTime extends Named {
  override readonly name = "OutOfTime";
  constructor(method: string, ms: number) {
    super(`${PACKAGE}: ${method}: no answer from the sidecar within ${ms} ms`);
  }
}

/** No engine can be made of what is configured. */
export class Unusable extends Named {
  override readonly name = "Unusable";
  constructor(cause: string) {
    super(`${PACKAGE}: the engine cannot be used as configured: ${cause}; mend the configuration and restart the gateway, contextengine doctor checks it`);
  }
}

/** The engine "openbrain" lacks an address or a key: only the operator can help, and nothing is asked at all. */
export class OpenBrainConfigError extends Named {
  override readonly name = "OpenBrainConfigError";
  constructor() {
    super(MISSING_CREDENTIALS);
  }
}

/** What an engine that works says about a call. */
const answers: readonly number[] = [Code.methodNotFound, Code.invalidParams, Code.cancelled, Code.needTranscript, Code.budget, Code.notFound, Code.missingCapability, Code.unsupported];

/** Reports whether an error says that the engine is out of order: not there, too slow, or failing, whatever it is asked. */
export function outOfOrder(error: unknown): boolean {
  return !(error instanceof ProtocolError && answers.includes(error.code)) && !misconfigured(error) && (error as { name?: unknown } | null)?.name !== "AbortError";
}

/**
 * Reports whether an error says that address or key is missing: no failure to work around, but to be told. The sidecar says so where its own configuration
 * lacks them. That an engine cannot be opened as configured may have other causes, a disk that can only be read among them.
 */
export const misconfigured = (error: unknown): boolean => error instanceof OpenBrainConfigError || (error instanceof ProtocolError && error.message.includes(MISSING_CREDENTIALS));

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
