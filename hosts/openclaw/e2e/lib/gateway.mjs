// A gateway of the host: started with a folder of its own, driven, killed, started again.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { run } from './process.mjs';
import { until } from './wait.mjs';

/** An installation of the host in a folder: configuration, state, log, and at most one running gateway. */
export class Installation {
  #gateway;
  #driver;
  #pending = new Map();
  #next = 1;
  #logFrom = 0;

  /**
   * @param {{rig: string, folder: string, port: number, token: string, config: object, env?: Record<string, string>}} options
   */
  constructor({ rig, folder, port, token, config, env = {} }) {
    Object.assign(this, { rig, folder, port, token });
    for (const sub of ['', 'home', 'state', 'ws', 'tmp']) mkdirSync(join(folder, sub), { recursive: true });
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
        if (attempt === 3 || !/startup migrations did not complete|lease .* was lost/.test(String(error))) throw error;
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
    child.exited = new Promise((resolve) => { child.once('exit', (code, signal) => resolve(signal ?? code)); });
    const ended = child.exited.then((how) => { throw new Error(`the gateway ended while it started (${how}): ${this.log().slice(from).slice(0, 2000)}`); });
    await Promise.race([until(() => /\[gateway\].*\bready\b(?! pid)/.test(this.log().slice(from).replace(/spawn broker ready.*/g, '')), 240_000, 'the gateway to be ready'), ended]);
    await this.#connect();
  }

  async #connect() {
    const driver = spawn('node', [fileURLToPath(new URL('./driver.mjs', import.meta.url)), this.hostPackage, `ws://127.0.0.1:${this.port}`], {
      env: { ...this.env, E2E_GATEWAY_TOKEN: this.token }, stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#driver = driver;
    let last = 'no answer';
    const connected = new Promise((resolve) => {
      createInterface({ input: driver.stdout }).on('line', (line) => {
        let message;
        try { message = JSON.parse(line); } catch { return; } // the host's client also prints
        if (message.connected) resolve(undefined);
        if (message.connectError) last = message.connectError;
        const call = this.#pending.get(message.id);
        if (!call) return;
        this.#pending.delete(message.id);
        if (message.error !== undefined) call.reject(new Error(message.error));
        else call.resolve(message.result);
      });
    });
    const timer = new Promise((_, reject) => { setTimeout(() => reject(new Error(`no connection to the gateway: ${last}`)), 180_000).unref(); });
    await Promise.race([connected, timer]);
  }

  /** Calls a method of the gateway. */
  call(method, params, { final = false, timeoutMs = 120_000 } = {}) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#driver.stdin.write(`${JSON.stringify({ id, method, params, final, timeoutMs })}\n`);
    });
  }

  /** One turn of an agent; returns the visible reply. Text and outcome are the host's. */
  async turn(sessionKey, message, { timeoutMs = 120_000, agentId } = {}) {
    const result = await this.call('agent', { message, sessionKey, agentId, idempotencyKey: randomUUID(), deliver: false }, { final: true, timeoutMs });
    return { status: result.status, text: (result.result?.payloads ?? []).map((p) => p.text ?? '').join('\n'), result };
  }

  compact(sessionKey) { return this.call('sessions.compact', { key: sessionKey }); }

  #dropDriver(why) {
    this.#driver?.kill('SIGKILL');
    this.#driver = undefined;
    for (const call of this.#pending.values()) call.reject(new Error(why));
    this.#pending.clear();
  }

  /** Takes the gateway away without a word. */
  async kill() {
    this.#gateway?.kill('SIGKILL');
    await this.#gateway?.exited;
    this.#gateway = undefined;
    this.#dropDriver('the gateway was killed');
  }

  /** Ends the gateway as an operator does; after a while by force, which the result tells. */
  async stop() {
    const gateway = this.#gateway;
    if (!gateway) return 'not running';
    this.#dropDriver('the gateway was stopped');
    gateway.kill('SIGTERM');
    const force = setTimeout(() => gateway.kill('SIGKILL'), 30_000);
    const how = await gateway.exited;
    clearTimeout(force);
    this.#gateway = undefined;
    return how;
  }
}
