#!/usr/bin/env bash
# rig.sh DIR installs what the end-to-end run needs into DIR: the Node that the host asks for and the host itself,
# both from npm at exact versions. It is idempotent: what is there at the right version is left alone.
# Only this script needs a network; run.sh needs none.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: rig.sh DIR" >&2; exit 2; }
rig=$1
node_version=${OPENCLAW_E2E_NODE:-24.21.0}
# Of the versions that are tried, the newest stands first.
host_version=${OPENCLAW_E2E_HOST:-$(head -1 "$(dirname "$0")/versions")}

# install FOLDER PACKAGE VERSION [npm flags]
install() {
  local folder=$1 package=$2 version=$3 found
  shift 3
  found=$(sed -n 's/^  "version": "\(.*\)",\{0,1\}$/\1/p' "$folder/node_modules/$package/package.json" 2>/dev/null | head -1 || true)
  if [ -f "$folder/.complete" ] && [ "$found" = "$version" ]; then
    echo "rig: $package $version is there"
    return
  fi
  echo "rig: installing $package $version"
  mkdir -p "$folder"
  rm -f "$folder/.complete"
  [ -f "$folder/package.json" ] || echo '{"private":true}' >"$folder/package.json"
  npm install --prefix "$folder" --no-audit --no-fund --no-progress --loglevel=error "$@" "$package@$version"
  touch "$folder/.complete"
}

mkdir -p "$rig"
rig=$(cd "$rig" && pwd)
# The node package puts its binary in place with its install script.
install "$rig/node" node "$node_version"
# Nothing of the host's dependencies has to be compiled for what is tested here.
install "$rig/host" openclaw "$host_version" --ignore-scripts

"$rig/node/node_modules/node/bin/node" --version
PATH="$rig/node/node_modules/node/bin:$PATH" node "$rig/host/node_modules/openclaw/openclaw.mjs" --version
