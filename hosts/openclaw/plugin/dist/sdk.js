const cores = ["openclaw/plugin-sdk/core", "openclaw/plugin-sdk/session-transcript-runtime"];
let loaded;
/** The host's SDK; what is not there is undefined. */
export function hostSdk() {
    loaded ??= Promise.all(cores.map(async (name) => import(name).catch(() => ({})))).then(([core, transcript]) => {
        const out = {};
        if (core?.delegateCompactionToRuntime)
            out.delegateCompactionToRuntime = core.delegateCompactionToRuntime;
        if (core?.buildMemorySystemPromptAddition)
            out.buildMemorySystemPromptAddition = core.buildMemorySystemPromptAddition;
        if (transcript?.readSessionTranscriptVisibleMessageDelta)
            out.readSessionTranscriptVisibleMessageDelta = transcript.readSessionTranscriptVisibleMessageDelta;
        return out;
    });
    return loaded;
}
