// Where Codex runs the model, the host puts what was assembled into the text of a turn, and Codex keeps every turn in a thread of its own. Without a word from
// the engine the whole view goes in again with each turn. With one it goes in once, and again into a new thread when the view is no longer what it began with.
import type { Settings } from "./config.js";
import type { AssembleParams, AssembleResult } from "./host-types.js";

/** Reports whether the host asks for Codex: then every call is about a prompt, since the host does not see Codex's tool loop. */
export const forCodex = (params: AssembleParams): boolean => params.runtimeSettings?.executionHost?.id === "codex-app-server";

/** What the host is told about the thread; epoch is the engine's, undefined where it was never asked. */
export function projectionOf(params: AssembleParams, settings: Settings, epoch: number | undefined): AssembleResult["contextProjection"] {
  if (!forCodex(params) || settings.codexProjection === "turn" || epoch === undefined) return undefined;
  return { mode: "thread_bootstrap", epoch: String(epoch) };
}
