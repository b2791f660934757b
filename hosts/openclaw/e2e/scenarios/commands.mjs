// The chat command of the plugin, typed into a session as a person does.
import { check, scenario } from '../lib/report.mjs';

/**
 * Types every form of the command. fact is what a search for code has to find, and secrets is what no answer may hold.
 */
export async function commands(installation, session, { code, fact, secrets }) {
  const said = [];
  const type = async (words) => {
    const text = await installation.command(session, `/openbrain ${words}`.trim());
    said.push(text);
    return text;
  };
  await scenario('commands: what there is', async () => {
    const text = await type('');
    check(['status', 'doctor', 'search <words>', 'compact'].every((word) => text.includes(`/openbrain ${word} - `)), text);
  });
  await scenario('commands: status', async () => {
    const text = await type('status');
    check(/^The engine works\.$/m.test(text), text);
    check(/^Engine: composed \(store sqlite, retriever hybrid, compactor archive\); the engine compacts\.$/m.test(text), text);
    check(/^This conversation: [\d,]+ messages in [\d,]+ turns, .* messages shown to the model; .*(stored but not shown|summary|summaries)\.$/m.test(text), text);
    check(/^A prompt may cost [\d,]+ tokens\.$/m.test(text), text);
    return text.replaceAll('\n', ' ');
  });
  await scenario('commands: doctor', async () => {
    const text = await type('doctor');
    check(text.startsWith('All is well.') && !text.includes('!!'), text);
  });
  await scenario('commands: search', async () => {
    const text = await type(`search ${code}`);
    check(text.includes(fact), text);
    check((await type('search qwxyvzzk')).startsWith('Nothing in this conversation matches'), said.at(-1));
  });
  await scenario('commands: compact, then once more', async () => {
    const text = await type('compact');
    check(/^Compacted: [\d,]+ tokens before, [\d,]+ after\.|^Nothing to compact/.test(text), text);
    const again = await type('compact');
    check(/^Compacted|^Nothing to compact/.test(again), again);
    return `${text} ${again}`;
  });
  await scenario('commands: no answer holds a key, a token or an address', () => {
    const found = [...Object.values(secrets), '127.0.0.1'].filter((secret) => said.some((text) => text.includes(secret)));
    check(found.length === 0 && said.length === 7, `${said.length} answers, ${found}`);
  });
}
