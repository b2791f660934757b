// The plugin's configuration: what stands in plugins.entries.openbrain.config, checked.
import { PACKAGE, PLUGIN_ID } from "./names.js";
const known = new Set([
    "baseUrl", "apiKey", "source", "recentMessages", "semanticSearchLimit", "subagentRecentMessages", "engine", "configFile", "socket", "command", "args",
    "allowLaunch", "passEnv", "ownsCompaction", "codexProjection", "tools", "failure", "connectTimeoutMs", "assembleTimeoutMs", "commitTimeoutMs", "compactTimeoutMs", "maintainTimeoutMs", "callTimeoutMs", "unresponsiveTimeoutMs",
]);
function fail(key, remedy) {
    throw new Error(`${PACKAGE}: config: ${key}: ${remedy}`);
}
function text(raw, key) {
    const value = raw[key];
    if (value === undefined || value === null)
        return undefined;
    if (typeof value !== "string")
        fail(key, "must be a text");
    return value.trim() === "" ? undefined : value.trim();
}
function whole(raw, key, otherwise, least, most) {
    const value = raw[key];
    if (value === undefined || value === null)
        return otherwise;
    if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
        fail(key, `must be a whole number, ${least} to ${most}`);
    return value;
}
function flag(raw, key) {
    const value = raw[key];
    if (value === undefined || value === null)
        return undefined;
    if (typeof value !== "boolean")
        fail(key, "must be true or false");
    return value;
}
function oneOf(raw, key, words) {
    const value = text(raw, key) ?? words[0];
    return words.find((word) => word === value) ?? fail(key, `must be ${words.join(" or ")}`);
}
function texts(raw, key) {
    const value = raw[key];
    if (value === undefined || value === null)
        return undefined;
    if (!Array.isArray(value))
        fail(key, "must be a list of texts");
    return value.map((item) => (typeof item === "string" ? item : fail(key, "must be a list of texts")));
}
/**
 * Reads the plugin's configuration. Where it has no baseUrl or apiKey, OPENBRAIN_URL and OPENBRAIN_API_KEY count. Throws an Error that names the key and
 * never its value.
 */
export function readSettings(raw, env) {
    for (const key of Object.keys(raw)) {
        if (!known.has(key))
            fail(key, `is no setting of this plugin (known: ${[...known].sort().join(", ")})`);
    }
    const configFile = text(raw, "configFile");
    const engine = text(raw, "engine") ?? (configFile === undefined ? PLUGIN_ID : undefined);
    if (engine === "legacy")
        fail("engine", "must not be legacy; to use the host's own engine, set plugins.slots.contextEngine to legacy");
    const ms = (key, otherwise) => whole(raw, key, otherwise, 10, 3_600_000);
    return {
        engine,
        baseUrl: text(raw, "baseUrl") ?? env["OPENBRAIN_URL"]?.trim() ?? "",
        apiKey: text(raw, "apiKey") ?? env["OPENBRAIN_API_KEY"]?.trim() ?? "",
        source: text(raw, "source"),
        recentMessages: whole(raw, "recentMessages", 20, 0, 100_000),
        semanticSearchLimit: whole(raw, "semanticSearchLimit", 10, 1, 10_000),
        subagentRecentMessages: whole(raw, "subagentRecentMessages", 8, 0, 100_000),
        configFile,
        socket: text(raw, "socket"),
        command: text(raw, "command"),
        args: texts(raw, "args"),
        allowLaunch: flag(raw, "allowLaunch"),
        passEnv: texts(raw, "passEnv") ?? [],
        ownsCompaction: flag(raw, "ownsCompaction"),
        codexProjection: oneOf(raw, "codexProjection", ["thread", "turn"]),
        tools: flag(raw, "tools") ?? true,
        failure: oneOf(raw, "failure", ["degrade", "strict"]),
        timeouts: {
            connect: ms("connectTimeoutMs", 10_000),
            assemble: ms("assembleTimeoutMs", 15_000),
            commit: ms("commitTimeoutMs", 20_000),
            compact: ms("compactTimeoutMs", 170_000),
            maintain: ms("maintainTimeoutMs", 170_000),
            call: ms("callTimeoutMs", 30_000),
            unresponsive: ms("unresponsiveTimeoutMs", 8_000),
        },
    };
}
/** Reports whether the engine that was asked for lacks its address or key. A sidecar behind a socket has its own. */
export function lacksCredentials(settings) {
    return settings.socket === undefined && settings.engine === PLUGIN_ID && settings.configFile === undefined && (settings.baseUrl === "" || settings.apiKey === "");
}
/** The ids to register the engine under. */
export function engineIds(settings) {
    const ids = [PLUGIN_ID, PACKAGE];
    if (settings.engine !== undefined && !ids.includes(settings.engine))
        ids.push(settings.engine);
    return ids;
}
