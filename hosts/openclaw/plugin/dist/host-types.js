// The parts of the host's contract that this plugin uses, in words of its own: the host's package is large, and nothing of it is needed to build.
// What the host passes is not trusted to have these shapes; whitelist.ts picks what crosses to the sidecar.
export {};
