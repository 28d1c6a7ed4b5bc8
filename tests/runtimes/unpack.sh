#!/bin/bash
# Unpacks containerd and runc of a newer Debian suite beside the system's, for tests against several versions:
#   unpack.sh SUITE DIR      (trixie, sid, ...)
# Afterwards DIR/bin has containerd, containerd-shim-runc-v2, ctr and runc that run on this system: they find their own
# dynamic loader and C library in DIR. Needs apt, dpkg and patchelf; asks the mirror only for what is not in DIR yet.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
suite=$1 dir=$(mkdir -p "$2" && cd "$2" && pwd)
[ ! -e "$dir/ready" ] || exit 0
command -v patchelf >/dev/null || { echo "unpack.sh: patchelf is not installed" >&2; exit 1; }

apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/debs" "$dir/root" "$dir/bin"
: >"$apt/status"
mirror=$(apt-get indextargets --format '$(SITE)' "Created-By: Packages" 2>/dev/null | grep -m1 'debian.org/debian$' ||
  echo http://deb.debian.org/debian)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt/sources.list"
options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/nonexistent -o "Dir::State=$apt"
  -o "Dir::State::status=$apt/status" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache"
  -o Acquire::Languages=none -o APT::Sandbox::User=root)
apt-get -qq "${options[@]}" update
(cd "$apt/debs" && apt-get -qq "${options[@]}" download containerd runc libc6 libseccomp2 libbtrfs0t64 libgcc-s1)
for deb in "$apt"/debs/*.deb; do dpkg -x "$deb" "$dir/root"; done

libraries=$(dirname "$(find "$dir/root" -name libc.so.6 | head -n1)")
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n1)
for program in containerd containerd-shim-runc-v2 ctr runc; do
  file=$(find "$dir/root/usr" -type f \( -path "*/bin/$program" -o -path "*/sbin/$program" \) | head -n1)
  [ -n "$file" ] || { echo "unpack.sh: $suite has no $program" >&2; exit 1; }
  cp "$file" "$dir/bin/$program"
  if patchelf --print-interpreter "$dir/bin/$program" >/dev/null 2>&1; then
    patchelf --set-interpreter "$loader" --set-rpath "$libraries" "$dir/bin/$program"
  fi
done
rm -rf "$apt"
"$dir/bin/containerd" --version
"$dir/bin/runc" --version | sed -n 1p
touch "$dir/ready"
