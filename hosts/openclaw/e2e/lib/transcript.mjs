// The host's own record of a session, read from its database: what there is to be caught up with.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { zstdDecompressSync } from 'node:zlib';

/** The messages that the host holds of a session, as it stored them, in their order. */
export function hostMessages(stateFolder, sessionKey) {
  const files = readdirSync(stateFolder, { recursive: true }).filter((name) => /agents\/main\/.*\.sqlite$/.test(name));
  for (const name of files) {
    const database = new DatabaseSync(join(stateFolder, name), { readOnly: true });
    try {
      const rows = database.prepare(`SELECT e.* FROM transcript_events e JOIN session_windows w ON w.session_id = e.session_id
        WHERE w.session_key = ? ORDER BY e.session_id, e.seq`).all(sessionKey);
      if (rows.length > 0) return rows.map((row) => JSON.parse(row.event_json ?? zstdDecompressSync(row.event_zstd).toString('utf8'))).filter((event) => event.type === 'message').map((event) => event.message);
    } catch (error) {
      if (!/no such table/.test(String(error))) throw error;
    } finally {
      database.close();
    }
  }
  return [];
}
