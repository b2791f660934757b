// A gateway of the host: started with a folder of its own, driven, killed, started again.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { run } from './process.mjs';
import { until } from './wait.mjs';

/** Whether a log says that the gateway takes calls. */
const isReady = (log) => /\[gateway\].*\bready\b(?! pid)/.test(log.replace(/spawn broker ready.*/g, ''));

/** An installation of the host in a folder: configuration, state, log, and at most one running gateway. */
export class Installation {
  #gateway;
  #driver;
  #link;
  #refusal = '';
  #pending = new Map();
  #next = 1;
  #logFrom = 0;

  /**
   * @param {{rig: string, folder: string, port: number, token: string, config: object, env?: Record<string, string>}} options
   */
  constructor({ rig, folder, port, token, config, env = {} }) {
    Object.assign(this, { rig, folder, port, token });
    for (const sub of ['', 'home', 'state', 'ws', 'tmp']) mkdirSync(join(folder, sub), { recursive: true });
    // What the host's modules compile to is the same for all installations of a rig.
    mkdirSync(join(rig, 'compile-cache'), { recursive: true });
    rmSync(join(folder, 'tmp/node-compile-cache'), { recursive: true, force: true });
    symlinkSync(join(rig, 'compile-cache'), join(folder, 'tmp/node-compile-cache'));
    this.configPath = join(folder, 'openclaw.json');
    this.logPath = join(folder, 'gateway.log');
    writeFileSync(this.logPath, '');
    this.hostPackage = join(rig, 'host/node_modules/openclaw');
    this.env = {
      PATH: `${join(rig, 'node/node_modules/node/bin')}:${process.env.PATH}`,
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      OPENCLAW_STATE_DIR: join(folder, 'state'),
      OPENCLAW_CONFIG_PATH: this.configPath,
      NO_COLOR: '1',
      ...env,
    };
    this.writeConfig(config);
    // Whatever ends the run ends the gateway.
    process.once('exit', () => { this.#gateway?.kill('SIGKILL'); this.#driver?.kill('SIGKILL'); });
  }

  /** The host's version. */
  get version() { return JSON.parse(readFileSync(join(this.hostPackage, 'package.json'), 'utf8')).version; }

  writeConfig(config) { writeFileSync(this.configPath, JSON.stringify(config, null, 2), { mode: 0o600 }); }
  readConfig() { return JSON.parse(readFileSync(this.configPath, 'utf8')); }
  log() { return readFileSync(this.logPath, 'utf8'); }
  /** What the gateway logged since the last call of mark. */
  newLog() { return this.log().slice(this.#logFrom); }
  mark() { this.#logFrom = this.log().length; }

  /** Runs a command of the host's own command line to its end. */
  cli(args, { timeoutMs = 120_000 } = {}) {
    return run('node', [join(this.hostPackage, 'openclaw.mjs'), ...args], { env: this.env, cwd: this.folder, timeoutMs });
  }

  get pid() { return this.#gateway?.pid; }

  /** Starts the gateway. On a machine that is very busy the host misses deadlines of its own while it starts, and says so; then it is started again. */
  async start() {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#startOnce();
        return;
      } catch (error) {
        await this.kill();
        if (attempt === 3 || !/startup migrations did not complete|lease .* was lost|lease heartbeat did not become ready/.test(String(error))) throw error;
      }
    }
  }

  async #startOnce() {
    const from = this.log().length;
    const out = openSync(this.logPath, 'a');
    const child = spawn('node', [join(this.hostPackage, 'openclaw.mjs'), 'gateway', 'run', '--port', String(this.port)], {
      env: this.env, cwd: this.folder, stdio: ['ignore', out, out],
    });
    closeSync(out);
    this.#gateway = child;
    this.#talker(); // loads meanwhile
    child.exited = new Promise((resolve) => { child.once('exit', (code, signal) => resolve(signal ?? code)); });
    const ended = child.exited.then((how) => { throw new Error(`the gateway ended while it started (${how}): ${this.log().slice(from).slice(0, 2000)}`); });
    await Promise.race([until(() => isReady(this.log().slice(from)), 600_000, 'the gateway to be ready'), ended]);
    await this.#connect();
  }

  /** The process that talks to the gateways of this installation. */
  #talker() {
    if (this.#driver) return this.#driver;
    const driver = spawn('node', [fileURLToPath(new URL('./driver.mjs', import.meta.url)), this.hostPackage, `ws://127.0.0.1:${this.port}`], {
      env: { ...this.env, E2E_GATEWAY_TOKEN: this.token }, stdio: ['pipe', 'pipe', 'ignore'],
    });
    driver.stdin.on('error', () => {});
    driver.once('exit', () => {
      if (this.#driver === driver) this.#driver = undefined;
      this.#fail('the client of the gateway ended');
    });
    createInterface({ input: driver.stdout }).on('line', (line) => {
      let message;
      try { message = JSON.parse(line); } catch { return; } // the host's client also prints
      if (message.connected !== undefined) this.#link?.(message.connected);
      if (message.connectError) this.#refusal = message.connectError;
      const call = this.#pending.get(message.id);
      if (!call) return;
      this.#pending.delete(message.id);
      if (message.error !== undefined) call.reject(new Error(message.error));
      else call.resolve(message.result);
    });
    return this.#driver = driver;
  }

  #say(line) { this.#talker().stdin.write(`${JSON.stringify(line)}\n`); }

  /** Connects to the gateway. A client that gets no answer in time is replaced by another one. */
  async #connect() {
    this.#refusal = 'no answer';
    for (let attempt = 1; attempt <= 4; attempt++) {
      const n = this.#next++;
      const linked = new Promise((resolve) => { this.#link = (which) => { if (which === n) resolve(true); }; });
      this.#say({ connect: n });
      let timer;
      const late = new Promise((resolve) => { timer = setTimeout(resolve, 45_000, false); });
      const connected = await Promise.race([linked, late]);
      clearTimeout(timer);
      if (connected) return;
    }
    throw new Error(`no connection to the gateway: ${this.#refusal}`);
  }

  /** Calls a method of the gateway. */
  call(method, params, { final = false, timeoutMs = 120_000 } = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#say({ id, method, params, final, timeoutMs });
    });
  }

  /** One turn of an agent; returns the visible reply. Text and outcome are the host's. */
  async turn(sessionKey, message, { timeoutMs = 600_000, agentId } = {}) {
    const result = await this.call('agent', { message, sessionKey, agentId, idempotencyKey: randomUUID(), deliver: false }, { final: true, timeoutMs });
    return { status: result.status, text: (result.result?.payloads ?? []).map((p) => p.text ?? '').join('\n'), result };
  }

  /** Types a command into a chat, and returns what the host answers in its place. */
  async command(sessionKey, message, { timeoutMs = 60_000 } = {}) {
    const shown = async () => (await this.call('chat.history', { sessionKey, limit: 200 })).messages.filter((m) => m.role === 'assistant');
    const before = (await shown()).length;
    await this.call('chat.send', { sessionKey, message, idempotencyKey: randomUUID() }, { timeoutMs });
    let answers = [];
    await until(async () => (answers = await shown()).length > before, timeoutMs, `an answer to ${message}`);
    return answers.at(-1).content.map((part) => part.text ?? '').join('\n');
  }

  compact(sessionKey) { return this.call('sessions.compact', { key: sessionKey }); }

  #fail(why) {
    for (const call of this.#pending.values()) call.reject(new Error(why));
    this.#pending.clear();
  }

  #disconnect(why) {
    if (this.#driver) this.#say({ disconnect: true });
    this.#fail(why);
  }

  /**
   * Changes the configuration under the running gateway, as an operator does, and waits until the host says that it holds; before 2026.9.5 it restarts
   * itself for some changes. change edits the configuration, or runs a command that does and returns nothing new.
   */
  async reconfigure(change) {
    const from = this.log().length;
    const before = readFileSync(this.configPath, 'utf8');
    const config = this.readConfig();
    await change(config);
    if (readFileSync(this.configPath, 'utf8') === before) this.writeConfig(config);
    const how = await until(() => {
      const log = this.log().slice(from);
      const restart = log.indexOf('config change requires gateway restart');
      if (restart >= 0) return isReady(log.slice(restart)) ? 'restarted' : undefined;
      return /\[reload\] config hot reload applied/.test(log) ? 'reloaded' : undefined;
    }, 120_000, 'the gateway to take up its configuration');
    if (how === 'restarted') await this.#connect();
  }

  /** Takes the gateway away without a word. */
  async kill() {
    this.#gateway?.kill('SIGKILL');
    await this.#gateway?.exited;
    this.#gateway = undefined;
    this.#disconnect('the gateway was killed');
  }

  /** Ends everything. */
  async close() {
    await this.stop();
    this.#driver?.kill('SIGKILL');
  }

  /** Ends the gateway as an operator does; after a while by force, which the result tells. */
  async stop() {
    const gateway = this.#gateway;
    if (!gateway) return 'not running';
    this.#disconnect('the gateway was stopped');
    gateway.kill('SIGTERM');
    const force = setTimeout(() => gateway.kill('SIGKILL'), 30_000);
    const how = await gateway.exited;
    clearTimeout(force);
    this.#gateway = undefined;
    return how;
  }
}
