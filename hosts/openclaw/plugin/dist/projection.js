/** Reports whether the host asks for Codex: then every call is about a prompt, since the host does not see Codex's tool loop. */
export const forCodex = (params) => params.runtimeSettings?.executionHost?.id === "codex-app-server";
/** What the host is told about the thread; epoch is the engine's, undefined where it was never asked. */
export function projectionOf(params, settings, epoch) {
    if (!forCodex(params) || settings.codexProjection === "turn" || epoch === undefined)
        return undefined;
    return { mode: "thread_bootstrap", epoch: String(epoch) };
}
