# Machines for tests: Debian with systemd as PID 1, each in namespaces of its own on one bridge. To be sourced by a script that runs as
# root in mount and network namespaces of its own. MACHINES is the directory of their files, on a RAM disk.
#
#   machines_network              the bridge, once
#   machine_make NAME LOWER       a root file system over LOWER, which stays as it is
#   machine_boot NAME ADDRESS     until systemd has started what it is to start
#   machine_run NAME COMMAND...   a command on a machine that runs
#   machine_off NAME              as if its plug was pulled
#   machines_clean                what is outside of the namespaces

MACHINE_NET=192.0.2
MACHINE_CGROUP=keelson-machines-$$
MACHINE_HIERARCHIES=$(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/self/mounts)

machines_network() {
  ip link set lo up
  ip link add machines type bridge
  ip address add $MACHINE_NET.254/24 dev machines
  ip link set machines up
}

machine_root() { echo "$MACHINES/$1/root"; }

machine_make() {
  local dir=$MACHINES/$1
  mkdir -p "$dir"/{upper,work,root,containerd}
  mount -t overlay -o "lowerdir=$2,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
  echo "$1" >"$dir/root/etc/hostname"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$dir/root/etc/hosts"
  # A machine has a /dev of a few nodes; nothing here is hot-plugged.
  local unit
  for unit in systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udev-trigger.service \
    systemd-networkd-wait-online.service systemd-resolved.service; do
    ln -sf /dev/null "$dir/root/etc/systemd/system/$unit"
  done
}

# Becomes PID 1. Runs in the machine's namespaces: machine_init ROOT CONTAINERD
machine_init() {
  local root=$1 containerd=$2 node path type options controllers
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs sys "$root/sys"
  mount -t tmpfs -o mode=755 dev "$root/dev"
  for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "kmsg 1 11"; do
    set -- $node
    mknod -m 666 "$root/dev/$1" c "$2" "$3"
  done
  mkdir "$root/dev/shm" "$root/dev/pts"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for path in run tmp; do mount -t tmpfs -o mode=755 ram "$root/$path"; done
  chmod 1777 "$root/tmp"
  # overlayfs does not lie on overlayfs.
  mkdir -p "$root/var/lib/containerd"
  mount --bind "$containerd" "$root/var/lib/containerd"
  mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
  awk '$3 == "cgroup" || $3 == "cgroup2" { print $2, $3, $4 }' /proc/self/mounts | grep -v "^$MACHINES" | while read -r path type options; do
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
  hostname "$(cat "$root/etc/hostname")"
  ip link set lo up
  cd "$root"
  mkdir -p .old
  pivot_root . .old
  umount -l /.old
  mount --make-rshared /
  exec env -i container=keelson PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=no
}

machine_cgroups() {  # NAME: one cgroup a hierarchy
  local hierarchy cgroup file
  for hierarchy in $MACHINE_HIERARCHIES; do
    for cgroup in "$hierarchy/$MACHINE_CGROUP" "$hierarchy/$MACHINE_CGROUP/$1"; do
      [ -d "$cgroup" ] || mkdir "$cgroup"
      [ "$(stat -fc %T "$hierarchy")" != cgroup2fs ] || continue
      for file in cpuset.cpus cpuset.mems; do
        [ ! -f "$cgroup/$file" ] || cat "$(dirname "$cgroup")/$file" >"$cgroup/$file"
      done
      [ ! -f "$cgroup/cgroup.clone_children" ] || echo 1 >"$cgroup/cgroup.clone_children"
    done
  done
}

machine_boot() {
  local name=$1 address=$2 dir=$MACHINES/$1 outer child='' hierarchy
  machine_cgroups "$name"
  (
    for hierarchy in $MACHINE_HIERARCHIES; do echo "$BASHPID" >"$hierarchy/$MACHINE_CGROUP/$name/cgroup.procs"; done
    exec unshare --mount --uts --ipc --net --pid --cgroup --fork --kill-child bash -euc \
      "$(declare -f machine_init); MACHINES=$MACHINES machine_init '$dir/root' '$dir/containerd'"
  ) >"$dir/boot.log" 2>&1 </dev/null &
  outer=$!
  echo $outer >"$dir/outer"
  until child=$(pgrep -P $outer -x systemd); do
    kill -0 $outer 2>/dev/null || { cat "$dir/boot.log"; fail "$name does not boot"; }
    sleep 0.05
  done
  echo "$child" >"$dir/pid"
  ip link add "to-$name" type veth peer name eth0 netns "$child"
  ip link set "to-$name" master machines up
  nsenter --target "$child" --net sh -c "ip address add $address/24 dev eth0 && ip link set eth0 up && ip route add default via $MACHINE_NET.254"
  # "degraded": some unit of Debian's has failed, for want of devices.
  local deadline=$((SECONDS + 60)) state=''
  until [ "$state" = running ] || [ "$state" = degraded ]; do
    [ $SECONDS -lt $deadline ] || fail "$name has not started: $(machine_run "$name" systemctl list-jobs --no-pager 2>&1)"
    state=$(machine_run "$name" systemctl is-system-running 2>/dev/null) || true
    sleep 0.05
  done
}

machine_run() {
  local name=$1
  shift
  nsenter --target "$(cat "$MACHINES/$name/pid")" --mount --uts --ipc --net --pid --cgroup --root --wd \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

machine_off() {
  local dir=$MACHINES/$1
  kill -KILL "$(cat "$dir/pid")" 2>/dev/null || true
  wait "$(cat "$dir/outer")" 2>/dev/null || true
  ip link delete "to-$1" 2>/dev/null || true
  rm -f "$dir/pid"
}

machines_clean() {
  local dir hierarchy
  for dir in "$MACHINES"/*/; do
    [ ! -f "$dir/pid" ] || machine_off "$(basename "$dir")"
  done
  for hierarchy in $MACHINE_HIERARCHIES; do
    [ ! -d "$hierarchy/$MACHINE_CGROUP" ] || find "$hierarchy/$MACHINE_CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
