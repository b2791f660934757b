// Scenarios that every mode has to pass: with the engine owning compaction, delegating it, and with the host's own engine.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { check, scenario } from '../lib/report.mjs';
import { call, tools } from '../lib/talk.mjs';

/** Turns without and with tools, several rounds and parallel calls. */
export async function talking(mode, talk, session) {
  await scenario(`${mode}: plain turns`, async () => {
    await talk.turn(session, `${mode}-p1`, 'Good morning.');
    await talk.turn(session, `${mode}-p2`, 'A longer answer, please.', '@@words 120');
    await talk.turn(session, `${mode}-p3`, 'Thank you.');
  });
  await scenario(`${mode}: tool loops`, async () => {
    writeFileSync(join(talk.installation.folder, 'ws', 'note.txt'), 'the note says marigold\n');
    await talk.turn(session, `${mode}-t1`, tools([call('read', { path: 'note.txt' })]));
    await talk.turn(session, `${mode}-t2`, tools([call('read', { path: 'note.txt' })], [call('ls', { path: '.' }), call('read', { path: 'note.txt' })], [call('read', { path: 'missing.txt' })]));
    await talk.turn(session, `${mode}-t3`, 'And without tools again.');
  });
}

/** The three ways in which a compaction is asked for. Fills the session first. */
export async function compacting(mode, talk, session, { compactedBy }) {
  await scenario(`${mode}: sessions compact`, async () => {
    for (let i = 1; i <= 6; i++) await talk.turn(session, `${mode}-f${i}`, 'Please write a page.', '@@words 500');
    const result = await talk.installation.compact(session);
    check(result.ok === true && result.compacted === true, `sessions.compact answered ${JSON.stringify(result).slice(0, 300)}`);
    await talk.turn(session, `${mode}-f7`, 'Still there?');
    return compactedBy?.('manual', result.result);
  });
  await scenario(`${mode}: overflow at the provider`, async () => {
    for (let i = 1; i <= 5; i++) await talk.turn(session, `${mode}-o${i}`, 'Please write a page.', '@@words 500');
    await talk.turn(session, `${mode}-o6`, 'This one overflows once.', '@@overflow 1');
    await talk.turn(session, `${mode}-o7`, 'And on.');
    return compactedBy?.('overflow');
  });
  await scenario(`${mode}: required preflight`, async () => {
    for (let i = 1; i <= 5; i++) await talk.turn(session, `${mode}-r${i}`, 'Please write a page.', '@@words 500');
    await talk.turn(session, `${mode}-r6`, 'The provider counts this one high.', `@@usage ${Math.floor(talk.window * 0.9)}`);
    await talk.turn(session, `${mode}-r7`, 'So this one needs a compaction first.');
    await talk.turn(session, `${mode}-r8`, 'And this one goes on.');
    return compactedBy?.('budget');
  });
}

/** The gateway dies without a word, once in the middle of a turn, and comes back. */
export async function gatewayKilled(mode, talk, session) {
  await scenario(`${mode}: gateway SIGKILL in the middle of a turn, restart`, async () => {
    const { installation } = talk;
    const before = talk.model.requests();
    const dying = talk.attempt(session, `${mode}-k1`, 'The gateway dies while this is answered.', '@@delay 60000');
    const end = Date.now() + 60_000;
    while (talk.model.requests() === before && Date.now() < end) await new Promise((resolve) => { setTimeout(resolve, 50); });
    check(talk.model.requests() > before, 'the model was never asked');
    await installation.kill();
    await dying;
    await installation.start();
    await talk.turnAfterRestart(session, `${mode}-k2`, 'Are you back?');
    await talk.turn(session, `${mode}-k3`, 'Good.');
  });
}
