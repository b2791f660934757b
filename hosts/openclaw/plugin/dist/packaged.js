// The program that comes with the plugin: a package for each platform, of which npm installs the one that fits. Nothing is downloaded and no script is run.
import { createRequire } from "node:module";
/** The package that holds the program for a platform. */
export function platformPackage(platform = process.platform, arch = process.arch) {
    return `contextengine-${platform}-${arch}`;
}
/** The path of the packaged program, or undefined where there is none. from is the file or address whose packages are looked through. */
export function packagedProgram(from = import.meta.url, platform = process.platform, arch = process.arch) {
    try {
        return createRequire(from).resolve(`${platformPackage(platform, arch)}/bin/contextengine${platform === "win32" ? ".exe" : ""}`);
    }
    catch {
        return undefined;
    }
}
/** What may be started, or undefined: the packaged program unless that was forbidden, any other only with permission. */
export function programToStart(settings, packaged) {
    if (settings.command === undefined && packaged !== undefined)
        return settings.allowLaunch === false ? undefined : packaged;
    return settings.allowLaunch === true ? settings.command ?? "contextengine" : undefined;
}
/** Says why nothing can be started, and what to do. */
export function nothingToStart(settings, packaged) {
    const socket = "set socket to that of a running sidecar";
    if (settings.command !== undefined)
        return `${socket}, or allowLaunch to true to let the plugin start command, or take command out to use the packaged program`;
    if (packaged !== undefined)
        return `${socket}, or take allowLaunch: false out to let the plugin start its own program`;
    return `the package ${platformPackage()} is not installed beside the plugin; install the plugin again without --omit=optional, or ${socket}, or allowLaunch to true to start contextengine from the PATH`;
}
