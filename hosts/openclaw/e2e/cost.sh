#!/usr/bin/env bash
# cost.sh RIG [WORK] measures what a session costs with the plugin and with the host's own engine, and prints a table; docs/cost.md says what it means.
# E2E_COST lists the runs as WINDOWxTURNSxTIMES (40000x72x3,128000x200x1); E2E_COST_ENGINE adds to the engine's configuration, as JSON.
set -euo pipefail
export E2E_COST="${E2E_COST:-40000x72x3,128000x200x1}"
E2E_ONLY=cost exec "$(dirname "$0")/run.sh" "$@"
