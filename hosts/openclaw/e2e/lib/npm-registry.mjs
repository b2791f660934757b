// A package registry on loopback that offers the packed packages of a folder, and remembers what was fetched.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

/** The platforms that a release is made for. Where a folder has not all of their packages, the others are offered by name alone: nobody may fetch them. */
const platforms = ['linux', 'darwin', 'win32'].flatMap((os) => ['x64', 'arm64'].map((cpu) => ({ os, cpu })));

/** @returns {Promise<{fetched: string[], url: string, versions: Map<string, string>, stop: () => Promise<void>}>} */
export async function startRegistry({ folder, port }) {
  const url = `http://127.0.0.1:${port}`;
  const packages = new Map();
  const fetched = [];
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tgz'))) {
    const data = readFileSync(join(folder, file));
    const manifest = JSON.parse(execFileSync('tar', ['-xzOf', join(folder, file), 'package/package.json'], { encoding: 'utf8' }));
    packages.set(manifest.name, { manifest, data });
  }
  const version = packages.get('contextengine')?.manifest.version;
  for (const { os, cpu } of platforms) {
    const name = `contextengine-${os}-${cpu}`;
    if (!packages.has(name)) packages.set(name, { manifest: { name, version, os: [os], cpu: [cpu] }, data: Buffer.alloc(0) });
  }
  const server = createServer((request, response) => {
    const [, name, tarball] = decodeURIComponent(new URL(request.url, url).pathname).split('/');
    const found = packages.get(name);
    if (!found) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const { manifest, data } = found;
    if (tarball !== undefined) {
      fetched.push(name);
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(data);
      return;
    }
    const dist = { tarball: `${url}/${name}/${name}-${manifest.version}.tgz`, integrity: `sha512-${createHash('sha512').update(data).digest('base64')}`, shasum: createHash('sha1').update(data).digest('hex') };
    const all = { [manifest.version]: { ...manifest, _id: `${name}@${manifest.version}`, dist } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ name, 'dist-tags': { latest: manifest.version }, versions: all, time: { [manifest.version]: '2026-01-01T00:00:00.000Z' } }));
  });
  await new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  return { fetched, url, versions: new Map([...packages].map(([name, { manifest }]) => [name, manifest.version])), stop: () => new Promise((resolve) => { server.closeAllConnections(); server.close(resolve); }) };
}
