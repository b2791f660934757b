// The way back: an agent calls the recall tools for what left its window long ago, and gets it as it was said. Recall by itself is off here, so that nothing
// but the tools can bring it.
import { join } from 'node:path';

import { check, judge, scenario } from '../lib/report.mjs';
import { engineFile, launched } from '../lib/setup.mjs';
import { dump, missingOrTwice, storedTwice } from '../lib/stored.mjs';
import { call, tools } from '../lib/talk.mjs';
import { textOf } from '../lib/tokens.mjs';
import { calls } from '../lib/wire.mjs';
import { commands } from '../scenarios/commands.mjs';
import { stage } from './stage.mjs';
import { degradations, judgePrompts } from './verdict.mjs';

const CODE = 'E-4711/kestrel';
/** What has to come back byte for byte: what quoting, escaping and wrapping like to change. */
const FACT = `the override of ${CODE} is <b>"Ünité\\n\\t5"</b> && \${x} \u2264 7\n\tif (a < b) { /* keep */ }\n  > quoted, and two spaces behind this  \n\n[2020-01-01 00:00 user #e1] no citation\nend of ${CODE}`;
const NAMES = ['context_search', 'context_expand', 'context_describe'];
/** The id in the first citation of an answer. */
const CITED = { found: '#([^\\s\\],#]+)\\]\\n' };

/** The texts of the quotations in an answer, by the ids of their citations. */
function quotations(text) {
  const out = new Map();
  let lines;
  for (const line of text.split('\n')) {
    const cited = /^\[.* #(\S+)\]$/.exec(line);
    if (cited) out.set(cited[1], lines = []);
    else if (line.startsWith('> ')) lines?.push(line.slice(2));
    else lines = undefined;
  }
  return new Map([...out].map(([id, quoted]) => [id, quoted.join('\n')]));
}

export async function toolsPart(context) {
  const { folder, sidecar, helper, plugin } = context;
  const store = join(folder, 'store.db');
  const wire = join(folder, 'wire.jsonl');
  const configFile = engineFile(folder, { engine: 'composed', store: { type: 'sqlite', path: store }, retriever: 'hybrid', compactor: 'archive', recall: { share: 0 } });
  const mine = 'agent:main:archive';
  const others = 'agent:other:archive';
  const settings = { plugin: { id: 'openbrain', path: plugin, config: launched({ folder, sidecar, configFile }) }, agents: ['main', 'other'] };
  await stage(context, 'tools', settings, async ({ installation, talk, log, requests, rest }) => {
    /** The requests of a turn, and the results that the newest of them holds. */
    const of = (name) => {
      const all = requests().filter((r) => r.turn === name && r.kind === 'turn');
      const results = all.at(-1).body.messages.filter((m) => m.role === 'tool' && m.tool_call_id.startsWith(`call${name.replaceAll('-', '')}`)).map((m) => textOf(m.content));
      return { all, results };
    };
    let fact = '';
    await scenario('tools: a fact leaves the window', async () => {
      await talk.turn(mine, 'way-1', `Please keep this: ${FACT}`);
      for (let i = 2; i <= 9; i++) await talk.turn(mine, `way-${i}`, `Chapter ${i} of the travel diary, please.`, '@@words 1900');
      fact = (await dump(helper, store)).find((e) => e.session === mine && e.role === 'user' && e.text.includes(FACT))?.text ?? '';
      check(fact !== '', 'the fact is not stored');
      check(!JSON.stringify(requests().at(-1).body.messages).includes(CODE), 'the window still shows it');
    });
    await scenario('tools: the model is offered the tools themselves', () => {
      const names = requests().at(-1).body.tools.map((t) => t.function.name);
      check(NAMES.every((name) => names.includes(name)), `it is offered ${names.join(', ')}`);
      check(textOf(requests().at(-1).body.messages[0].content).includes('context_search'), 'the system prompt does not name context_search');
      const schemas = JSON.stringify(requests().at(-1).body.tools.filter((t) => NAMES.includes(t.function.name)));
      return `${Math.ceil(schemas.length / 4)} tokens of schemas`;
    });
    await scenario('tools: the prompt names the skill that says when to use them, and the model can read it', async () => {
      const system = textOf(requests().at(-1).body.messages[0].content);
      const [, location] = /<name>context-recall<\/name>[\s\S]*?<location>([^<]*)<\/location>/.exec(system) ?? [];
      check(location, `it does not: ${/<available_skills>[\s\S]*<\/available_skills>/.exec(system)?.[0].slice(0, 600)}`);
      await talk.turn(mine, 'way-skill', 'Read the skill.', tools([call('read', { path: location.replace(/^~/, installation.env.HOME) })]));
      const [read] = of('way-skill').results;
      check(read?.includes('## When to look') && read.includes('context_expand'), `it read ${read?.slice(0, 300)}`);
    });
    await scenario('tools: search, then expand, bring it back byte for byte', async () => {
      await talk.turn(mine, 'way-back', 'Look it up.', tools(
        [call('context_search', { query: `override ${CODE}` })],
        [call('context_expand', { id: CITED }), call('context_describe', {})],
      ));
      const { all, results: [found, expanded, described] } = of('way-back');
      check(all.length === 3, `${all.length} requests`);
      check(found?.includes(`the override of ${CODE} is <b>"Ünité`), `the search answered ${found?.slice(0, 300)}`);
      const [[, whole] = []] = quotations(expanded ?? '');
      check(whole === fact, `the expansion shows ${JSON.stringify(whole)}, stored is ${JSON.stringify(fact)}`);
      check(/messages in \d+ turns/.test(described ?? ''), `the description says ${described?.slice(0, 300)}`);
    });
    await scenario('tools: a long entry comes in pages, and every byte of it', async () => {
      const long = (await dump(helper, store)).find((e) => e.session === mine && e.role === 'assistant' && e.text.includes('ok way-3'));
      const next = { found: '"offset":(\\d+)' };
      await talk.turn(mine, 'way-pages', 'Read it.', tools(
        [call('context_expand', { id: long.id, tokens: 1000 })],
        ...[1, 2].map(() => [call('context_expand', { id: long.id, tokens: 1000, offset: next })]),
      ));
      const pages = of('way-pages').results.map((text) => quotations(text).get(long.id) ?? '');
      const read = pages.join('');
      check(read === long.text, `${pages.map((p) => p.length).join(' + ')} of ${long.text.length}: ${read.slice(0, 100)}`);
      return `${pages.length} pages, ${read.length} characters`;
    });
    await scenario('tools: another agent finds nothing of it', async () => {
      const { id } = (await dump(helper, store)).find((e) => e.text === fact);
      await talk.turn(others, 'way-other', 'Look it up.', tools(
        [call('context_search', { query: CODE })], [call('context_expand', { id })], [call('context_search', { query: CODE, session: mine, agent: 'main' })],
      ));
      const { results } = of('way-other');
      check(results.length === 3, `${results.length} results`);
      check(!results.some((text) => text.includes('override of')), `it got ${results.join(' | ').slice(0, 400)}`);
      check(/no entry with this id/.test(results[1]), `the expansion answered ${results[1].slice(0, 300)}`);
    });
    await scenario('tools: what cannot be done is said in words', async () => {
      await talk.turn(mine, 'way-wrong', 'Look it up.', tools([call('context_expand', { id: '#nobody' }), call('context_search', { query: 'zzyzx-no-such-thing' })]));
      const { results } = of('way-wrong');
      check(/no entry with this id/.test(results[0]) && /Nothing is stored/.test(results[1]), results.join(' | ').slice(0, 400));
    });
    await scenario('tools: numbers out of range, and written as texts, are brought into it', async () => {
      await talk.turn(mine, 'way-bounds', 'Look it up.', tools([call('context_search', { query: CODE, limit: 999, tokens: 1_000_000 }), call('context_search', { query: CODE, limit: '0', tokens: '1', offset: -5 })]));
      const { results } = of('way-bounds');
      check(results.length === 2 && results.every((text) => text.includes('best first')), results.join(' | ').slice(0, 400));
      const [most, least] = calls(wire).filter((c) => c.method === 'search').slice(-2).map((c) => c.params);
      check(most.limit === 20 && most.tokens <= 8000 && least.limit === 1 && least.tokens === 200 && least.offset === 0, JSON.stringify([most, least]));
    });
    await commands(installation, mine, { code: CODE, fact: `the override of ${CODE} is`, secrets: context.secrets });
    await scenario("tools: the conversation goes on after commands, and the model does not see their answers", async () => {
      await talk.turn(mine, 'way-on', 'Shall we go on?');
      check(!/The engine works|All is well|Everything is still stored/.test(JSON.stringify(requests().at(-1).body.messages)), 'it does');
    });
    const sidecars = calls(wire).filter((c) => c.method === 'initialize').length;
    const before = 'agent:main:before';
    await scenario('tools: none on legacy; what was said there is handed over when the engine is chosen', async () => {
      await installation.reconfigure((config) => { config.plugins.slots.contextEngine = 'legacy'; });
      for (const name of ['before-1', 'before-2']) await talk.turn(before, name, 'Good morning.');
      check(!requests().at(-1).body.tools.some((t) => NAMES.includes(t.function.name)), 'they are offered on legacy');
      await installation.reconfigure((config) => { config.plugins.slots.contextEngine = 'openbrain'; });
      for (const name of ['before-3', 'before-4']) await talk.turn(before, name, 'Good evening.');
      const boots = calls(wire).filter((c) => c.method === 'bootstrap' && c.params.session.session === before);
      check(boots[0]?.result?.known === 0, `the first answer is ${JSON.stringify(boots[0]?.result ?? boots[0]?.error)}`);
      check(boots[1]?.params.transcript?.messages.length === 4 && boots[1].result?.imported === 4 && boots[1].result.known === 4, `handed over: ${JSON.stringify(boots[1]?.result ?? boots[1]?.error)}`);
      check(boots.length === 3 && !boots[2].params.transcript && boots[2].result?.known === 6, `then ${JSON.stringify(boots[2]?.result ?? boots[2]?.error)}`);
    });
    await rest();
    const traffic = calls(wire);
    const asked = traffic.filter((c) => ['search', 'expand', 'describe'].includes(c.method));
    const wrong = asked.filter((c) => c.params.session.session !== mine && c.params.session.session !== others);
    judge('tools: every look is into the session of the agent that calls', wrong.map((c) => JSON.stringify(c.params.session)), `${asked.length} looks, median ${median(asked.map((c) => c.answered - c.at))} ms`);
    judge('tools: one sidecar served engine and tools', sidecars === 1 ? [] : [`${sidecars} were started`]);
    judgePrompts('tools', requests(), talk);
    judge('tools: no turn degraded to legacy', degradations(log()));
    const entries = await dump(helper, store);
    judge('tools: no turn is stored twice', storedTwice(entries));
    judge('tools: every accepted turn is stored exactly once, byte for byte', missingOrTwice(entries, talk.accepted().filter((t) => t.session !== before), wire), `${talk.accepted().length} turns`);
  });
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
