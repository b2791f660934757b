// The host's own engine, without the plugin: what the scenarios are measured against.
import { compacting, gatewayKilled, talking } from '../scenarios/shared.mjs';
import { stage } from './stage.mjs';
import { judgePrompts } from './verdict.mjs';

export async function legacyPart(context) {
  const session = 'agent:main:legacy-work';
  await stage(context, 'legacy', {}, async ({ talk, requests }) => {
    await talking('legacy', talk, session);
    await compacting('legacy', talk, session, {});
    if (context.long) await gatewayKilled('legacy', talk, session);
    judgePrompts('legacy', requests(), talk);
  });
}
