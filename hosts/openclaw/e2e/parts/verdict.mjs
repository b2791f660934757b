// The judged properties that hold in every mode.
import { judge } from '../lib/report.mjs';
import { cramped, disorder, overWindow, prefixReuse, prompts, repeatedTurns, tornPairs } from '../lib/judge.mjs';

export function judgePrompts(mode, log, talk) {
  const all = prompts(log);
  judge(`${mode}: no torn tool pair`, tornPairs(all), `${all.length} requests`);
  judge(`${mode}: no turn twice, the current one there once`, repeatedTurns(all), `${all.length} requests`);
  judge(`${mode}: turns in their order`, disorder(all, talk.turns.map((t) => t.name)));
  const largest = Math.max(0, ...all.map((r) => r.tokens));
  judge(`${mode}: no request over the window`, overWindow(log), `largest ${largest} tokens of ${talk.window}`);
  judge(`${mode}: there is always room for an answer`, cramped(all), `least ${Math.min(...all.map((r) => r.body.max_completion_tokens ?? Infinity))} tokens`);
}

/** Prefix reuse of at least 98 % where the window did not move. moves says when it did. */
export function judgePrefix(mode, log, session, names, moved) {
  const own = new Set(names);
  const pairs = prefixReuse(prompts(log).filter((r) => own.has(r.turn)), moved);
  const quiet = pairs.filter((p) => !p.moved);
  const shares = quiet.map((p) => p.share);
  const least = Math.min(1, ...shares);
  judge(`${mode}: prefix reuse in turns without a step or a compaction, ${session}`, quiet.filter((p) => p.share < 0.98).map((p) => `turn ${p.turn}: ${(p.share * 100).toFixed(1)} %: was ${p.old?.slice(0, 120)} is ${p.now?.slice(0, 120)}`),
    `least ${(least * 100).toFixed(1)} % over ${quiet.length} turns; the window moved in ${pairs.length - quiet.length}`);
  return pairs;
}

/** When the window of a session moved, from the sidecar's answers. */
export function movesOf(wire, session) {
  const events = wire.filter((c) => c.method === 'assemble' && c.result && c.params.session.session === session)
    .map((c) => ({ at: c.answered, epoch: c.result.projectionEpoch, stepped: c.result.stepped === true || Boolean(c.result.degraded) }));
  return (before, now) => {
    const last = events.filter((e) => e.at <= before.at).at(-1);
    const between = events.filter((e) => e.at > before.at && e.at <= now.at);
    return between.some((e) => e.stepped || e.epoch !== (last?.epoch ?? e.epoch));
  };
}

/** Lines of the plugin in the host's log that do not say which gateway they are from, or passed on from a sidecar of the plugin's own and do not say from which. */
export function unnamed(log, port, launches) {
  const own = new RegExp(`\\[plugins\\] \\[gateway ${port}, pid \\d+(, sidecar \\d+)?\\] openclaw-openbrain-context: (sidecar: )?`);
  return log.split('\n').filter((line) => /\[plugins\].* openclaw-openbrain-context: /.test(line)).filter((line) => {
    const [all, sidecar, passedOn] = line.match(own) ?? [];
    return all === undefined || launches && passedOn !== undefined && sidecar === undefined;
  }).map((line) => line.slice(0, 300));
}

/** Signs in the host's log that a turn was not the engine's. */
export function degradations(log) {
  return log.split('\n').filter((line) => /degraded to "legacy"|context engine assemble failed|context engine bootstrap failed|quarantin(?!ed=f)/i.test(line)).map((line) => line.slice(0, 300));
}
