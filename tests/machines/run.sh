#!/bin/bash
# Clusters of machines that systemd has booted (machine.sh), from packages. life.sh: the scripts of vagrant/ install them from a local
# repository and run nodectl init and join; then a node is rebooted, upgraded and reset. documents.sh: the commands of docs/. three.sh: a
# control plane of three. Nothing of this machine changes.
#
# usage: run.sh REPOSITORY PREPARED LIFE...      PREPARED: what prepare.sh has made
set -euo pipefail
repository=$(realpath "$1") prepared=$(realpath -m "$2")
shift 2
here=$(dirname "$(realpath "$0")")
fail() {
  echo "FAILED: $1"
  exit 1
}
source "$repository/tools/dev/roots.sh"
source "$here/../packaging/packages.sh"

# Neither packages nor root change meanwhile.
if [ -e "$prepared.lock" ]; then
  exec 8<"$prepared.lock"
  flock -s 8
fi
if [ -e "$prepared.skipped" ]; then
  echo "skipped: $(cat "$prepared.skipped")"
  exit 77
fi
[ -d "$prepared" ] || fail "$prepared does not exist: the test machines.prepare makes it"
lower=$repository/build/packages/roots/$(. /etc/os-release && echo "$VERSION_CODENAME")-machine
exec 9>>"$lower.lock"
flock -s 9
root_ready "$lower" "$(cat "$prepared/depends")" || fail "$lower is not that of these packages: the test machines.prepare makes it"

work=$(mktemp -d /tmp/keelson-machines-XXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/ram"
for life in "$@"; do
  KEELSON_KUBECTL=$(realpath "$(command -v kubectl)") unshare --mount --propagation private --net bash -euo pipefail "$here/$life" "$work" "$lower" \
    "$repository" "$(packages_version)" "$prepared"
done
