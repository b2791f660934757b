#!/usr/bin/env bash
# added.sh RIG [WORK] measures what the plugin adds to the time of a turn, beside the host's own engine and one that does nothing; docs/cost.md says what it
# means. E2E_ADDED is how many turns are played (60).
set -euo pipefail
E2E_ONLY=added exec "$(dirname "$0")/run.sh" "$@"
