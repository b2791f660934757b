const plainName = /^[\w.-]{1,64}$/;
const plainPort = /^\d{1,5}$/;
/**
 * Where this process's lines are from: "gateway work:18789, pid 4711", by the profile and the port that the host puts into its environment, as far as it
 * does. What else may stand there is not repeated.
 */
export function origin(env, pid, sidecar) {
    const parts = [];
    const profile = env["OPENCLAW_PROFILE"] ?? "";
    const port = env["OPENCLAW_GATEWAY_PORT"] ?? "";
    const gateway = [plainName.test(profile) ? profile : "", plainPort.test(port) ? port : ""].filter((part) => part !== "").join(":");
    if (gateway !== "")
        parts.push(`gateway ${gateway}`);
    parts.push(`pid ${pid}`);
    if (sidecar !== undefined)
        parts.push(`sidecar ${sidecar}`);
    return parts.join(", ");
}
/** A logger each of whose lines begins with where it is from. The host sets its port when its gateway starts, after this plugin may have been loaded. */
export function named(logger, env = process.env, pid = process.pid) {
    const of = (sidecar) => {
        const line = (message) => message.split("\n").map((one) => `[${origin(env, pid, sidecar)}] ${one}`).join("\n");
        return {
            ...(logger.debug === undefined ? {} : { debug: (message) => logger.debug?.(line(message)) }),
            info: (message) => { logger.info(line(message)); },
            warn: (message) => { logger.warn(line(message)); },
            error: (message) => { logger.error(line(message)); },
        };
    };
    return { ...of(undefined), of };
}
