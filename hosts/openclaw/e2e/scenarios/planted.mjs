// A long piece of work in one session, with facts that are said early and asked for late: what costs are measured on. Everything follows from the number of
// turns, so that two engines get the very same words.
import { call, tools } from '../lib/talk.mjs';

/** What is planted: a subject, which a question names, and the value that no question holds. */
const FACTS = [
  ['access code of the north gate', 'kestrel-4471'], ['name of the ferry to the outer islands', 'Meridian Wren'], ['phone extension of the archive', 'extension 5093'],
  ['colour of the survey flags', 'burnt ochre'], ['surname of the bridge engineer', 'Halvorsen-Pike'], ['depth of the east well', '61.4 metres'],
  ['password of the weather station', 'tamarind-violet-82'], ['birthday of the night porter', '17 February'], ['serial number of the tide gauge', 'TG-20918-B'],
  ['price of the second lantern', '348 crowns'],
];

const TOPICS = {
  harbour: 'pier crane buoy mooring fender rope quay barge pilot tide anchor winch signal jetty hull',
  orchard: 'apple graft pruning blossom ladder cider bark rootstock harvest crate wasp frost canopy mulch pear',
  railway: 'sleeper ballast signal gauge siding viaduct coupling boiler platform timetable points cutting axle whistle freight',
  pottery: 'kiln glaze clay wheel slip bisque firing cone handle spout wedging stoneware trimming cobalt shelf',
  library: 'catalogue shelf binding index folio reader lamp ledger stamp microfilm reading vellum spine annotation loan',
  bakery: 'oven dough starter crumb proofing flour crust peel scoring rye salt butter tray steam kneading',
  observatory: 'mirror dome eyepiece spectrum comet shutter tracking aperture nebula exposure filter transit parallax mount plate',
  garden: 'hedge trellis compost seedling watering spade bulb perennial gravel pond moss border fern rose terrace',
  workshop: 'chisel plane bench dovetail clamp sawdust mortise varnish lathe veneer rasp joint vice template dowel',
  theatre: 'curtain rehearsal prompt costume lighting backdrop trapdoor script chorus balcony props makeup overture stage understudy',
};
const NAMES = Object.keys(TOPICS);

/** Numbers that follow from a text. */
function* numbers(seed) {
  let h = 2166136261;
  for (const c of seed) h = Math.imul(h ^ c.charCodeAt(0), 16777619) >>> 0;
  for (;;) {
    h = (Math.imul(h, 1664525) + 1013904223) >>> 0;
    yield h >>> 8;
  }
}

/** About so many words on a topic. */
function prose(seed, topic, count) {
  const draw = numbers(seed);
  const words = TOPICS[topic].split(' ');
  const pick = (list) => list[draw.next().value % list.length];
  const out = [];
  for (let n = 0; n < count; n += 14) {
    out.push(`${pick(['The', 'Every', 'Another', 'One'])} ${pick(words)} ${pick(['near', 'behind', 'under', 'beside'])} the ${pick(words)} ${pick(['needs', 'holds', 'replaces', 'follows', 'carries'])} `
      + `${pick(['a', 'some', 'its', 'that'])} ${pick(words)} ${pick(['before', 'after', 'while', 'unless'])} the ${pick(words)} ${pick(['is', 'was', 'stays', 'gets'])} `
      + `${pick(['ready', 'dry', 'noted', 'counted', 'moved'])} at ${draw.next().value % 900}.`);
  }
  return out.join(' ');
}

const openings = [
  (topic, i) => `Please write section ${i} about the ${topic}. These are my notes:`,
  (topic, i) => `Could you go on with the ${topic}, section ${i}? What I have so far:`,
  (topic, i) => `Section ${i} next, on the ${topic}. Use this:`,
  (topic, i) => `How about the ${topic} now, for section ${i}? My notes say:`,
];

/** The turns of a session: what is said, what is answered, and the fact that is asked for. */
export function script(turns) {
  const plant = new Map(FACTS.map((fact, k) => [2 + Math.floor((k * turns) / 40), fact]));
  const ask = new Map(FACTS.map((fact, k) => [turns - 1 - Math.floor(((FACTS.length - 1 - k) * turns) / 25), fact]));
  const out = [];
  for (let i = 1; i <= turns; i++) {
    const topic = NAMES[Math.floor(i / 3) % NAMES.length];
    const name = `work-${i}`;
    const asked = ask.get(i);
    if (asked) {
      out.push({ name, lines: [`What was the ${asked[0]} again?`], answer: `ok ${name} ${prose(`${name} answer`, topic, 60)}`, wants: asked[1] });
      continue;
    }
    // Facts come first: of its newest turns a host's own compaction keeps the beginnings alone.
    const planted = plant.get(i);
    const lines = planted ? [`Keep in mind: the ${planted[0]} is ${planted[1]}.`] : [];
    lines.push(`${openings[i % openings.length](topic, i)} ${prose(`${name} notes`, topic, 260)}`);
    if (i % 9 === 5) lines.push(tools([call('read', { path: `${topic}.txt` })]));
    out.push({ name, lines, answer: `ok ${name} ${prose(`${name} answer`, topic, 480)}` });
  }
  return out;
}

/** The files that tools of the script read. */
export const files = () => NAMES.map((topic) => [`${topic}.txt`, prose(`${topic} file`, topic, 400)]);

/** Of the facts that are asked for, how many stand in the prompts of those turns. */
export function shown(played, log) {
  const asking = played.filter((t) => t.wants);
  const facts = asking.filter(({ name, wants }) => {
    const request = log.find((r) => r.turn === name && r.body.tools);
    return request && JSON.stringify(request.body.messages).includes(wants);
  });
  return { asked: asking.length, facts: facts.length, missing: asking.filter((t) => !facts.includes(t)).map((t) => `${t.name}: ${t.wants}`) };
}

/** A summary as a model makes it that keeps facts: those that the request holds, what was asked last, and a few hundred words. It passes the host's audit. */
export function summary(body) {
  const text = JSON.stringify(body.messages);
  const kept = FACTS.filter(([, value]) => text.includes(value)).map(([subject, value]) => `- The ${subject} is ${value}.`);
  const last = [...text.matchAll(/\[User\]: (?:@@turn \S+?\\n)?([^\\]{0,150})/g)].at(-1)?.[1] ?? '';
  return `## Decisions\nSections are written one by one. The last to be written: ${last}\n\n## Open TODOs\n${prose('summary', 'library', 200)}\n\n## Constraints/Rules\n${kept.join('\n') || 'None.'}\n\n## Pending user asks\nNone.\n\n## Exact identifiers\nNone.`;
}
