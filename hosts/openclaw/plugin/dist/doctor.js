import { Code, OutOfTime, ProtocolError, Unavailable } from "./errors.js";
import { COMMAND, PLUGIN_ID } from "./names.js";
/** What happens while the engine is out of order. */
export const whileOut = (failure) => failure === "strict"
    ? "failure is strict: until the engine is back, the host gets the errors and nothing stands in for it; this is said once"
    : "until the engine is back, turns are answered with the newest messages that fit, the host compacts, and what is said is kept and stored later; this is said once";
/** What to do about an error; empty where there is nothing to say. */
export function adviceFor(error) {
    if (error instanceof Unavailable) {
        return "run contextengine doctor";
    }
    if (error instanceof OutOfTime)
        return "the sidecar is busy or hangs; look at its log, or raise the plugin's timeouts";
    if (error instanceof ProtocolError) {
        switch (error.code) {
            case Code.configuration: return "mend the engine's configuration and restart the gateway; contextengine doctor checks it";
            case Code.budget: return "the model's window is too small for system prompt and newest messages";
            case Code.quarantined: return `mend what failed, then type /${COMMAND} retry in a chat, or restart the gateway: until then the engine is set aside`;
            case Code.missingCapability: return "this host version lacks what the engine needs; choose another compactor or update the host";
            default: return "";
        }
    }
    return "";
}
const tree = (value) => (typeof value === "object" && value !== null ? value : {});
/**
 * Says why an installed plugin would not be used, from the host's configuration; empty when it is in use. Only the plugins section is looked at.
 */
export function installationProblems(config, ids) {
    const plugins = tree(tree(config)["plugins"]);
    const out = [];
    if (plugins["enabled"] === false)
        out.push("plugins.enabled is false: no plugin is used; set it to true");
    const list = (key) => (Array.isArray(plugins[key]) ? plugins[key] : []);
    if (list("deny").includes(PLUGIN_ID))
        out.push(`plugins.deny has ${PLUGIN_ID}: take it out`);
    if (list("allow").length > 0 && !list("allow").includes(PLUGIN_ID))
        out.push(`plugins.allow lacks ${PLUGIN_ID}: add it`);
    if (tree(tree(plugins["entries"])[PLUGIN_ID])["enabled"] === false)
        out.push(`plugins.entries.${PLUGIN_ID}.enabled is false: set it to true`);
    const slot = tree(plugins["slots"])["contextEngine"];
    if (typeof slot !== "string" || !ids.includes(slot)) {
        out.push(`plugins.slots.contextEngine is ${typeof slot === "string" ? `"${slot}"` : "not set"}: set it to "${PLUGIN_ID}" and restart the gateway`);
    }
    return out;
}
