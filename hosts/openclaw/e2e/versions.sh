#!/usr/bin/env bash
# versions.sh RIG runs the end-to-end proof on every host that the file "versions" names, newest first: the newest in RIG, each other one in RIG-VERSION
# with RIG's Node. One that fails does not keep the others from running. Exit code 0: all passed.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: versions.sh RIG" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
newest=$(cd "$1" && pwd)
failed=()
for version in $(cat "$here/versions"); do
  rig=$newest${older:+-$version} older=yes
  printf '\n== OpenClaw %s\n' "$version"
  mkdir -p "$rig"
  [ "$rig" = "$newest" ] || [ -e "$rig/node" ] || ln -s "$newest/node" "$rig/node"
  if ! { OPENCLAW_E2E_HOST=$version "$here/rig.sh" "$rig" && "$here/run.sh" "$rig"; }; then failed+=("$version"); fi
done
[ ${#failed[@]} -eq 0 ] || { echo "versions.sh: failed on ${failed[*]}"; exit 1; }
