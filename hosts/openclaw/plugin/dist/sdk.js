const cores = ["openclaw/plugin-sdk/core", "openclaw/plugin-sdk/session-transcript-runtime", "openclaw/plugin-sdk/state-paths"];
let loaded;
/** The host's SDK; what is not there is undefined. */
export function hostSdk() {
    loaded ??= Promise.all(cores.map(async (name) => import(name).catch(() => ({})))).then(([core, transcript, paths]) => {
        const out = {};
        if (core?.delegateCompactionToRuntime)
            out.delegateCompactionToRuntime = core.delegateCompactionToRuntime;
        if (core?.buildMemorySystemPromptAddition)
            out.buildMemorySystemPromptAddition = core.buildMemorySystemPromptAddition;
        if (transcript?.readSessionTranscriptVisibleMessageDelta)
            out.readSessionTranscriptVisibleMessageDelta = transcript.readSessionTranscriptVisibleMessageDelta;
        if (paths?.resolveStateDir)
            out.resolveStateDir = paths.resolveStateDir;
        return out;
    });
    return loaded;
}
