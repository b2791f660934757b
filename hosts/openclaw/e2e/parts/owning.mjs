// The engine owns compaction; everything else of the proof hangs on this part.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { LINES } from '../lib/memory-plugin/index.js';
import { judge, scenario, check } from '../lib/report.mjs';
import { leaks } from '../lib/secrets.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice, storedTwice } from '../lib/stored.mjs';
import { calls } from '../lib/wire.mjs';
import { FACT, longSession, providerFailures, sidecarKilled, subagents } from '../scenarios/owning.mjs';
import { compacting, gatewayKilled, talking } from '../scenarios/shared.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrefix, judgePrompts, movesOf } from './verdict.mjs';

/** What a request has in front of the conversation. */
const systemText = (request) => JSON.stringify(request?.body.messages.filter((m) => m.role === 'system') ?? []);

export async function owningPart(context) {
  const { folder, sidecar, helper, plugin, secrets, turns } = context;
  const store = join(folder, 'store.db');
  const wire = join(folder, 'wire.jsonl');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'hybrid', compactor: 'archive' });
  const long = 'agent:main:long';
  const work = 'agent:main:work';
  await stage(context, 'owning', { plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) }, memory: true, env: { OPENBRAIN_API_KEY: secrets.openBrainKey } }, async ({ installation, talk, requests }) => {
    await talking('owning', talk, work);
    await longSession(talk, long, { turns });
    const asked = () => calls(wire).filter((c) => c.method === 'compact');
    await compacting('owning', talk, work, {
      compactedBy: (trigger, result) => {
        const found = asked().filter((c) => c.params.trigger === trigger);
        check(found.length > 0, `the engine was never asked to compact by ${trigger}`);
        check(found.every((c) => c.result && (c.result.compacted || /below threshold|already under target|already compacted/.test(c.result.reason))), `a compaction by ${trigger} neither made progress nor said why not: ${JSON.stringify(found.at(-1)?.result ?? found.at(-1)?.error)}`);
        if (result) check(result.firstKeptEntryId && result.firstKeptEntryId === found.at(-1).result.firstKeptEntryId, `the first kept entry of ${JSON.stringify(found.at(-1).result)} is lost on the way to the host: ${JSON.stringify(result).slice(0, 300)}`);
        check(asked().every((c) => c.asked.length === 0), 'an owning engine asked the host to compact');
        return `${found.length} by ${trigger}`;
      },
    });
    await providerFailures(talk, work);
    await subagents(talk, work, wire);
    await sidecarKilled(talk, work, wire);
    const crashed = [...installation.log().matchAll(/the sidecar is gone/g)].length;
    await gatewayKilled('owning', talk, work);
    await scenario('owning: the fact is recalled after the restart', async () => {
      await talk.turn(long, 'long-after-restart', 'Once more: what was the vault phrase of the observatory?');
    });
    await installation.stop();

    const log = requests();
    const traffic = calls(wire);
    judgePrompts('owning', log, talk);
    judgePrefix('owning', log, long, talk.names(long), movesOf(traffic, long));
    judgePrefix('owning', log, work, talk.names(work), movesOf(traffic, work));
    for (const name of [`long-${turns - 10}`, 'long-after-restart']) {
      const request = log.filter((r) => r.turn === name).at(-1);
      judge(`owning: the fact of turn 3 is in the request of ${name}`, request && JSON.stringify(request.body.messages.filter((m) => m.role !== 'system')).includes(FACT) ? [] : ['it is not there']);
    }
    const prompt = systemText(log.filter((r) => r.turn === 'long-after-restart').at(-1));
    judge('owning: what memory plugins of the host say is in the prompt, each line once', LINES.filter((line) => prompt.split(line).length !== 2).map((line) => `${prompt.split(line).length - 1} times: ${line}`), `${LINES.length} lines`);
    // The host gives settings to these, and the place of the transcript to those.
    const told = (methods, says) => traffic.filter((c) => methods.includes(c.method) && !says(c.params)).map((c) => `${c.method}: ${JSON.stringify({ ...c.params, transcript: undefined })}`);
    judge('owning: what the host says about a run and its transcript crosses', [
      ...told(['bootstrap', 'assemble', 'compact'], ({ settings }) => settings?.schemaVersion === 1 && settings.executionHost?.id && settings.contextEngineSelection?.selectedId === 'openbrain' && settings.requestedModel),
      ...told(['bootstrap', 'commitTurn', 'compact', 'maintain'], ({ transcriptScope }) => transcriptScope?.sessionId && transcriptScope.path),
    ], `${traffic.filter((c) => c.params?.settings).length} calls`);
    judge('owning: no turn degraded to legacy', degradations(installation.log()), `the sidecar was gone ${crashed} times`);
    const entries = await dump(helper, store);
    judge('owning: every accepted turn is stored exactly once, byte for byte', missingOrTwice(entries, talk.accepted(), wire), `${talk.accepted().length} turns, ${entries.length} entries`);
    judge('owning: no turn is stored twice', storedTwice(entries));
    const places = [wire, store, `${store}-wal`, configFile, installation.logPath, join(folder, 'requests.jsonl'), join(folder, 'home'), join(folder, 'ws')].filter((p) => existsSync(p));
    judge('owning: no planted secret on the wire, in the store, in logs or files', leaks(secrets, places), `${places.length} places, ${(readFileSync(wire).length / 1e6).toFixed(1)} MB of traffic`);
    const reads = traffic.filter((c) => c.method === 'assemble' && c.params.transcript);
    const sent = reads.reduce((n, c) => n + c.params.transcript.messages.length, 0);
    const held = reads.reduce((n, c) => n + c.params.transcript.messages.length + (c.params.transcript.skipped ?? 0), 0);
    judge('owning: long histories are not sent again and again', sent <= held / 4 ? [] : [`${sent} messages sent for ${held} in the lists`], `${sent} messages sent for ${held} in the lists of ${reads.length} calls`);
  });
}
