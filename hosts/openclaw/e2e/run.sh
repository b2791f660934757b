#!/usr/bin/env bash
# run.sh RIG [WORK] runs the end-to-end proof with the rig that rig.sh made, in namespaces: a network that has nothing but loopback, and mounts of its own. WORK gets all that the
# run writes; it is kept when something fails. Exit code 0: everything passed. E2E_ONLY=owning,mute,delegating,legacy,openbrain,tools,subagents,broken,doctor,overhead picks parts (also
# facts, changes, repairs, sessions, cost and added; packed, where E2E_PACKAGES names the folder of a release: all parts run what its packages hold then), E2E_LONG=1 plays the long versions, E2E_LANES says how many run at once (2), E2E_EVENTS is the file that gets the results as `go test -json` writes them. What the host's modules compile to is kept in RIG/compile-cache.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: run.sh RIG [WORK]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
rig=$(cd "$1" && pwd)
work=${2:-$(mktemp -d "${TMPDIR:-/tmp}/openclaw-e2e.XXXXXX")}
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$(cd "$here/../../.." && pwd)

(cd "$root" && go build -o "$work/bin/contextengine" ./cmd/contextengine && go build -o "$work/bin/helper" ./hosts/openclaw/e2e/helper)
export PATH="$rig/node/node_modules/node/bin:$PATH"
# Where there are packages of a release, what runs is what they hold.
if [ -n "${E2E_PACKAGES:-}" ]; then
  platform=$(node -p '`contextengine-${process.platform}-${process.arch}`')
  rm -rf "$work/packed-program" "$work/packed-plugin"
  mkdir -p "$work/packed-program" "$work/packed-plugin"
  tar xzf "$(ls "$E2E_PACKAGES/$platform"-*.tgz)" -C "$work/packed-program" --strip-components=1
  tar xzf "$(ls "$E2E_PACKAGES"/openclaw-openbrain-context-*.tgz)" -C "$work/packed-plugin" --strip-components=1
  export E2E_SIDECAR="${E2E_SIDECAR:-$work/packed-program/bin/contextengine}" E2E_PLUGIN="$work/packed-plugin"
fi
export E2E_SIDECAR="${E2E_SIDECAR:-$work/bin/contextengine}" E2E_HELPER="$work/bin/helper"

program=(node "$here/main.mjs" "$rig" "$work")
code=0
flags=
for f in -nm -n; do unshare $f true 2>/dev/null && { flags=$f; break; }; done
if [ -n "$flags" ]; then
  unshare $flags sh -c 'ip link set lo up 2>/dev/null || ifconfig lo up; exec "$@"' sh "${program[@]}" || code=$?
else
  echo "run.sh: no permission for a network namespace: this run can reach the network"
  "${program[@]}" || code=$?
fi
if [ "$code" -eq 0 ] && [ $# -lt 2 ]; then rm -rf "$work"; else echo "run.sh: files are in $work"; fi
exit "$code"
