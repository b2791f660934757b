// A conversation with an installation, and the record of what was accepted.
import { check } from './report.mjs';

/** Runs turns in sessions of one installation and remembers them in order. */
export class Talk {
  /** @type {{name: string, session: string, accepted: boolean}[]} */
  turns = [];

  constructor(installation, model, label) {
    this.installation = installation;
    this.model = model;
    this.label = label;
  }

  /** One turn. The reply has to be the model's; more lines are directives or text. */
  async turn(session, name, ...lines) {
    const answer = await this.attempt(session, name, ...lines);
    check(answer.status === 'ok' && answer.text.includes(`ok ${name}`), `turn ${name}: ${answer.status}: ${answer.text.slice(0, 200)}`);
    return answer;
  }

  /** One turn after a restart: as long as the host still recovers what was under way, it asks to come again. */
  async turnAfterRestart(session, name, ...lines) {
    for (let i = 0; i < 60; i++) {
      const answer = await this.attempt(session, name, ...lines);
      if (answer.status === 'ok' || !answer.text.includes('Retry.')) {
        check(answer.status === 'ok' && answer.text.includes(`ok ${name}`), `turn ${name}: ${answer.status}: ${answer.text.slice(0, 200)}`);
        return answer;
      }
      this.turns.pop();
      await new Promise((resolve) => { setTimeout(resolve, 1000); });
    }
    throw new Error(`turn ${name}: the host still asks to retry`);
  }

  /** One turn that may fail; the result says how. */
  async attempt(session, name, ...lines) {
    this.model.label(this.label);
    const record = { name, session, accepted: false };
    this.turns.push(record);
    try {
      const answer = await this.installation.turn(session, [`@@turn ${name}`, ...lines].join('\n'));
      record.accepted = answer.status === 'ok' && answer.text.includes(`ok ${name}`);
      return answer;
    } catch (error) {
      return { status: 'error', text: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Turns of a session, by name. */
  names(session) { return this.turns.filter((t) => t.session === session).map((t) => t.name); }
  accepted() { return this.turns.filter((t) => t.accepted); }
}

/** The line that tells the model to call tools. */
export const tools = (...rounds) => `@@tools ${JSON.stringify(rounds)}`;
export const call = (name, args) => ({ name, args });
/** A call of a tool that is not in the prompt but in the host's catalogue. */
export const catalogued = (id, args) => call('tool_call', { id, args });
