#!/bin/bash
# Runs a test program below a systemd of its own: PID 1 of new namespaces, on this machine's root file system under a
# RAM disk. What a program does to units, cgroups and the network stays inside.
#
# usage: run.sh PROGRAM [ARGS...]      needs root and the package systemd
#        KEELSON_SYSTEMD_SECONDS: how long it may take (240)
set -euo pipefail
program=$(realpath "$1")
shift
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
[ -x /lib/systemd/systemd ] || { echo "skipped: systemd is not installed"; exit 77; }

name=keelson-systemd-$$
dir=$(mktemp -d /tmp/$name-XXXX)
hierarchies=$(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/self/mounts)
cleanup() {
  local hierarchy cgroup
  for hierarchy in $hierarchies; do
    [ -d "$hierarchy/$name" ] || continue
    find "$hierarchy/$name" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap cleanup EXIT

cat >"$dir/enter.sh" <<'ENTER'
for cgroup in $(awk -v name="$2" '$3 == "cgroup2" { print $2 "/" name "/inside" }' /proc/self/mounts); do
  [ ! -d "$cgroup" ] || echo 0 >"$cgroup/cgroup.procs"
done
exec unshare --cgroup bash "$1/inside.sh" "$@"
ENTER

cat >"$dir/inside.sh" <<'INSIDE'
set -eu
dir=$1 name=$2
mount --make-rprivate /
mount -t tmpfs ram "$dir/ram"
mkdir "$dir/ram/upper" "$dir/ram/work" "$dir/ram/root"
root=$dir/ram/root
mount -t overlay -o "lowerdir=/,upperdir=$dir/ram/upper,workdir=$dir/ram/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "kmsg 1 11"; do
  set -- $node
  mknod -m 666 "$root/dev/$1" c "$2" "$3"
done
mkdir "$root/dev/shm" "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
for path in run tmp var/lib/containerd; do
  mkdir -p "$root/$path"
  mount -t tmpfs -o mode=755 ram "$root/$path"
done
mkdir -p "$root$dir"
mount --bind "$dir" "$root$dir"
mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
# As this machine has them: v2 alone, or the old hierarchies with v2 beside them.
awk '$3 == "cgroup" || $3 == "cgroup2" { print $2, $3, $4 }' /proc/self/mounts | grep -v "^$dir" | while read -r path type options; do
  if [ "$type" = cgroup2 ] && [ "$path" = /sys/fs/cgroup ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    continue
  fi
  mkdir -p "$root$path"
  if [ "$type" = cgroup2 ]; then
    mount -t cgroup2 cgroup2 "$root$path"
  else
    controllers=$(printf '%s' "$options" | tr , '\n' | grep -Ev '^(rw|ro|nosuid|nodev|noexec|relatime|xattr|clone_children|release_agent=.*)$' | paste -sd,)
    case $controllers in name=*) controllers=none,$controllers ;; esac
    mount -t cgroup -o "$controllers" cgroup "$root$path"
  fi
done
units=$root/etc/systemd/system
mkdir -p "$units"
cp "$dir/test.service" "$units/keelson-test.service"
for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service; do
  ln -sf /dev/null "$units/$unit"
done
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l /.old
ip link set lo up
exec env -i container=keelson PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=keelson-test.service --show-status=no
INSIDE

{
  printf '%q ' "$program" "$@"
  echo ">$dir/output 2>&1"
  echo "echo \$? >$dir/status"
} >"$dir/test.sh"
cat >"$dir/test.service" <<UNIT
[Unit]
Description=$program
After=basic.target
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/bash $dir/test.sh
Environment=HOME=/root
UNIT
mkdir "$dir/ram"
touch "$dir/output"

for hierarchy in $hierarchies; do
  mkdir "$hierarchy/$name"
  for file in cpuset.cpus cpuset.mems; do
    [ ! -f "$hierarchy/$file" ] || [ "$(stat -fc %T "$hierarchy")" = cgroup2fs ] || cat "$hierarchy/$file" >"$hierarchy/$name/$file"
  done
  [ ! -f "$hierarchy/$name/cgroup.clone_children" ] || echo 1 >"$hierarchy/$name/cgroup.clone_children"
  # In v2 a cgroup cannot both hold processes and delegate controllers: move waiting processes out of systemd's root.
  [ "$(stat -fc %T "$hierarchy")" = cgroup2fs ] || continue
  mkdir "$hierarchy/$name/outside" "$hierarchy/$name/inside"
  for controller in $(cat "$hierarchy/$name/cgroup.controllers"); do
    echo "+$controller" >"$hierarchy/$name/cgroup.subtree_control"
  done
done
seconds=${KEELSON_SYSTEMD_SECONDS:-240} ended=0
(
  for hierarchy in $hierarchies; do
    cgroup=$hierarchy/$name
    [ ! -d "$cgroup/outside" ] || cgroup=$cgroup/outside
    echo "$BASHPID" >"$cgroup/cgroup.procs"
  done
  exec timeout -s KILL "$seconds" unshare --mount --uts --ipc --net --pid --fork --kill-child \
    bash "$dir/enter.sh" "$dir" "$name"
) >"$dir/boot" 2>&1 </dev/null || ended=$?

fail() {
  echo "--- systemd's words"
  cat "$dir/boot"
  echo "--- failed: $1"
  exit 1
}
cat "$dir/output"
if [ ! -s "$dir/status" ]; then
  [ $ended = 137 ] || fail "systemd ended before the tests did, with status $ended"
  fail "the tests had not ended after $seconds s"
fi
[ "$(cat "$dir/status")" = 0 ] || fail "the tests ended with status $(cat "$dir/status")"
grep -q '^\[  PASSED  \] [1-9]' "$dir/output" || fail "no test has run"
