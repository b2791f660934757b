// A context engine that does nothing: what the host's own handling of any engine costs is measured with it.
import { delegateCompactionToRuntime } from 'openclaw/plugin-sdk/core';

const engine = {
  info: { id: 'openbrain', name: 'Idle', version: '0.1.0', ownsCompaction: false, turnMaintenanceMode: 'background', transcriptSemantics: { currentTurnFence: 'before-current-turn-entry-v1', turnAdvancementIdempotency: 'atomic-idempotent-v1' } },
  bootstrap: async () => ({ bootstrapped: true }),
  maintain: async () => ({ changed: false, bytesFreed: 0, rewrittenEntries: 0 }),
  ingest: async () => ({ ingested: false }),
  assemble: async ({ messages }) => ({ messages, estimatedTokens: 0 }),
  commitTurn: async () => ({ status: 'committed' }),
  compact: (params) => delegateCompactionToRuntime(params),
  dispose: async () => {},
};

export default { id: 'openbrain', name: 'Idle', description: 'Does nothing.', register: (api) => api.registerContextEngine('openbrain', () => engine) };
