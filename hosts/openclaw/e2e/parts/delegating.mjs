// The engine leaves compaction to the host.
import { join } from 'node:path';

import { check, judge } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice, storedTwice } from '../lib/stored.mjs';
import { calls } from '../lib/wire.mjs';
import { compacting, gatewayKilled, talking } from '../scenarios/shared.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrefix, judgePrompts, movesOf } from './verdict.mjs';

export async function delegatingPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const wire = join(folder, 'wire.jsonl');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'hybrid', compactor: 'delegate' });
  const session = 'agent:main:delegating-work';
  await stage(context, 'delegating', { plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) } }, async ({ talk, log, requests, rest }) => {
    await talking('delegating', talk, session);
    await compacting('delegating', talk, session, {
      compactedBy: (trigger, result) => {
        const found = calls(wire).filter((c) => c.method === 'compact' && c.params.trigger === trigger);
        check(found.length > 0 || trigger !== 'manual', `the engine was never asked to compact by ${trigger}`);
        check(found.every((c) => c.asked.length === 1), 'the host was not asked exactly once for a compaction');
        if (result) check(result.firstKeptEntryId && found.at(-1).result.firstKeptEntryId === result.firstKeptEntryId && found.at(-1).result.summary === result.summary, `the host's result ${JSON.stringify(result).slice(0, 300)} did not pass whole: ${JSON.stringify(found.at(-1).result)}`);
        return `${found.length} by ${trigger}, each passed on once`;
      },
    });
    if (context.long) await gatewayKilled('delegating', talk, session);
    await rest();
    const asked = requests();
    judgePrompts('delegating', asked, talk);
    judgePrefix('delegating', asked, session, talk.names(session), movesOf(calls(wire), session));
    judge('delegating: no turn degraded to legacy', degradations(log()));
    const entries = await dump(helper, store);
    judge('delegating: every accepted turn is stored exactly once, byte for byte', missingOrTwice(entries, talk.accepted(), wire), `${talk.accepted().length} turns`);
    judge('delegating: no turn is stored twice', storedTwice(entries));
  });
}
