// Prints the session that costs are measured on, as messages of OpenAI's form, one a line, with a system prompt as long as that of the host with its tools:
// what experiment/cost replays without the host. Usage: planted.mjs TURNS
import { files, script } from './scenarios/planted.mjs';

const SYSTEM = 'Rules and tools of this installation follow, one after the other, as they stand here. ';
const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const text = new Map(files());

write({ role: 'system', content: SYSTEM.repeat(Math.ceil(34_000 / SYSTEM.length)) });
for (const { name, lines, answer } of script(Number(process.argv[2] ?? 72))) {
  const said = lines.filter((line) => !line.startsWith('@@'));
  write({ role: 'user', content: said.join('\n') });
  for (const [n, round] of lines.filter((line) => line.startsWith('@@tools ')).flatMap((line) => JSON.parse(line.slice('@@tools '.length))).entries()) {
    const id = (i) => `call-${name}-${n}-${i}`;
    write({ role: 'assistant', content: '', tool_calls: round.map((call, i) => ({ id: id(i), type: 'function', function: { name: call.name, arguments: JSON.stringify(call.args) } })) });
    for (const [i, call] of round.entries()) write({ role: 'tool', tool_call_id: id(i), content: text.get(call.args.path) });
  }
  write({ role: 'assistant', content: answer });
}
