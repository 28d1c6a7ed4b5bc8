# Nodes. A cluster's only node is this machine itself, or its nodes are N network namespaces: each with a mount
# namespace, a cgroup subtree, a containerd and agents of its own, on one bridge (network.sh).
#
#   nodes/NAME/conf run log                     of its daemons; run/ is gone after a power-off
#   nodes/NAME/containerd kubelet pod-logs cni controlplane hosts  state that outlives a power-off
#   nodes/NAME/ns/mnt, nodes/NAME/ns/uts        hold the mount and UTS namespaces; /run/netns/keelson-ID-NAME the other

# The arguments of `up`. CLUSTER_NODES is empty where the machine itself is the node. The first CLUSTER_CONTROL_PLANES
# nodes run the control plane.
cluster_load() {
  CLUSTER_NODES='' CLUSTER_SUBNET='' CLUSTER_CONTROL_PLANES=1
  # shellcheck source=/dev/null
  [ ! -f "$KEELSON_DIR/cluster" ] || source "$KEELSON_DIR/cluster"
  NODES=("$KEELSON_NODE_NAME")
  # shellcheck disable=SC2207
  [ -z "$CLUSTER_NODES" ] || NODES=($(seq -f 'node%.0f' "$CLUSTER_NODES"))
  CONTROL_PLANES=("${NODES[@]:0:$CLUSTER_CONTROL_PLANES}")
}

cluster_save() {
  mkdir -p "$KEELSON_DIR"
  printf 'CLUSTER_NODES=%s\nCLUSTER_SUBNET=%s\nCLUSTER_CONTROL_PLANES=%s\n' "$CLUSTER_NODES" "$CLUSTER_SUBNET" \
    "$CLUSTER_CONTROL_PLANES" >"$KEELSON_DIR/cluster"
}

# node_use NAME: all settings of one node, as NODE_*. NODE_ENTER is what a command has in front to run there.
node_use() {
  NODE=$1
  NODE_DIR=$KEELSON_DIR/nodes/$NODE
  NODE_CONF=$NODE_DIR/conf
  NODE_RUN=$NODE_DIR/run
  NODE_LOGS=$NODE_DIR/log
  NODE_SOCKET=$NODE_RUN/containerd.sock
  NODE_CGROUP=$KEELSON_CGROUP_ROOT/$NODE
  if [ -z "$CLUSTER_NODES" ]; then
    NODE_IP=$(host_ip)
    NODE_NETNS='' NODE_LINK='' NODE_ENTER=()
  else
    NODE_INDEX=${NODE#node}
    NODE_IP=$(cidr_address "$CLUSTER_SUBNET" "$NODE_INDEX")
    NODE_NETNS=keelson-$KEELSON_ID-$NODE
    NODE_LINK=kn${KEELSON_ID}n$NODE_INDEX
    NODE_ENTER=(nsenter "--net=/run/netns/$NODE_NETNS" "--uts=$NODE_DIR/ns/uts" "--mount=$NODE_DIR/ns/mnt")
  fi
}

# node_resolve WHICH: the name of a node given by name or number.
node_resolve() {
  local name
  for name in "${NODES[@]}"; do
    if [ "$1" = "$name" ] || [ "node$1" = "$name" ]; then echo "$name"; return; fi
  done
  die "no such node: $1 (${NODES[*]})"
}

node_ip() { (node_use "$1"; printf '%s' "$NODE_IP"); }

runs_control_plane() { [[ " ${CONTROL_PLANES[*]} " == *" $NODE "* ]]; }

several_control_planes() { [ "${#CONTROL_PLANES[@]}" -gt 1 ]; }

# What clients on the nodes reach the API by. The name of several control planes has an address of each in the nodes' hosts
# file: a client takes the first that answers, and turns to another when that one does not any more.
api_host() { if several_control_planes; then printf %s "$API_NAME"; else node_ip "${CONTROL_PLANES[0]}"; fi; }

# An address of the API for this machine: that of the first control plane that answers.
api_ip() {
  local name ip
  if several_control_planes; then
    for name in "${CONTROL_PLANES[@]}"; do
      ip=$(node_ip "$name")
      ! curl -fsS -m 2 --connect-timeout 1 --cacert "$PKI/ca.crt" "https://$ip:$KEELSON_API_PORT/readyz" >/dev/null 2>&1 || { printf %s "$ip"; return; }
    done
  fi
  node_ip "${CONTROL_PLANES[0]}"
}

# The nodes' hosts file: this machine's, and the name of the API.
node_hosts() {
  local name
  cat /etc/hosts
  ! several_control_planes || for name in "${CONTROL_PLANES[@]}"; do printf '%s %s\n' "$(node_ip "$name")" "$API_NAME"; done
}

in_node() { "${NODE_ENTER[@]}" "$@"; }

# each_node COMMAND...: once a node, one after another. The _at_once form does not wait in between.
each_node() {
  local name
  # No `&&` or `||` around these: within them a failing command would not end the shell.
  for name in "${NODES[@]}"; do (node_use "$name"; "$@"); done
}

each_node_at_once() {
  local name pid pids=() failed=
  for name in "${NODES[@]}"; do
    (node_use "$name"; "$@") &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  [ -z "$failed" ] || exit 1
}

# ---- cgroups ----
# The node's processes are found by the node's cgroups: daemons are put into one, what they start inherits it.
cgroup_hierarchies() {
  local dir
  for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do [ ! -f "$dir/cgroup.procs" ] || echo "$dir"; done
}

# On v1 any one hierarchy would do: the one that no resource controller is bound to is the least intrusive.
daemons_cgroup() {
  local dir
  for dir in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup/pids; do
    [ ! -f "$dir/cgroup.procs" ] || { echo "$dir$NODE_CGROUP/daemons"; return; }
  done
  die "no cgroups are mounted in /sys/fs/cgroup"
}

# The kubelet makes cgroups below the node's own only.
node_make_cgroups() {
  local dir
  for dir in $(cgroup_hierarchies); do mkdir -p "$dir$NODE_CGROUP"; done
}

# node_exec COMMAND...: becomes the command, as a process of the node that ends when the node does.
node_exec() {
  local cgroup
  cgroup=$(daemons_cgroup)
  node_make_cgroups
  mkdir -p "$cgroup"
  # shellcheck disable=SC2016
  exec bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cgroup" "${NODE_ENTER[@]}" "$@"
}

node_processes() {
  local dir
  for dir in $(cgroup_hierarchies); do
    [ ! -d "$dir$NODE_CGROUP" ] || find "$dir$NODE_CGROUP" -name cgroup.procs -exec cat {} + 2>/dev/null || true
  done | sort -u
}

node_kill() {
  local end=$((SECONDS + 20)) pids
  while pids=$(node_processes) && [ -n "$pids" ]; do
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    [ "$SECONDS" -lt "$end" ] || die "$NODE: processes do not end: ${pids//$'\n'/ }"
    sleep 0.05
  done
}

node_remove_cgroups() {
  local dir
  for dir in $(cgroup_hierarchies); do
    [ ! -d "$dir$NODE_CGROUP" ] || find "$dir$NODE_CGROUP" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
}

# ---- power ----
is_namespace() { [ "$(stat -f -c %T "$1" 2>/dev/null)" = nsfs ]; }

node_is_on() { [ -z "$NODE_NETNS" ] || { is_namespace "/run/netns/$NODE_NETNS" && is_namespace "$NODE_DIR/ns/mnt"; }; }

# Makes the node's namespaces and plugs it in; nothing runs there yet.
node_power_on() {
  mkdir -p "$NODE_CONF" "$NODE_RUN" "$NODE_LOGS" "$NODE_DIR/cni"
  [ -n "$NODE_NETNS" ] || { forward_packets; return 0; }
  if node_is_on; then
    link_heal
    return 0
  fi
  node_unmake_namespaces
  ip netns add "$NODE_NETNS"
  link_make
  mkdir -p "$NODE_DIR/ns" /run/containerd /var/lib/cni
  mount --bind "$NODE_DIR/ns" "$NODE_DIR/ns"
  mount --make-private "$NODE_DIR/ns"  # a file that holds a mount namespace cannot be on a shared mount
  touch "$NODE_DIR/ns/mnt" "$NODE_DIR/ns/uts"
  node_hosts >"$NODE_DIR/hosts"
  node_make_mounts
}

# What containerd, the CNI plugins and `ip netns` keep at fixed places is the node's own, and so is its host name, which
# pods on its network have too. Copies of network namespaces that are mounted on the host would keep those alive. Mounts
# are shared, as systemd has them on machines of their own: pods get and give them where they ask for propagation.
#
# A mount namespace can be held by a file of older namespaces only, and Linux 6.18 numbers namespaces by batches of
# each processor: one made elsewhere than ours may count as older, and the mount fails with EINVAL. One made on the
# processor that ours was made on never does.
node_make_mounts() {
  local cpu error=''
  for cpu in $(seq 0 $(($(nproc --all) - 1))); do
    # shellcheck disable=SC2016
    ! error=$(nsenter "--net=/run/netns/$NODE_NETNS" taskset -c "$cpu" unshare "--uts=$NODE_DIR/ns/uts" \
      "--mount=$NODE_DIR/ns/mnt" --propagation private bash -ec '
      findmnt -rno TARGET -t nsfs | sort -r | while read -r mount; do umount -l "$mount"; done
      mount -t tmpfs -o mode=755 run-containerd /run/containerd
      mount -t tmpfs -o mode=755 run-netns /run/netns
      mount --bind "$0" /var/lib/cni
      mount --bind "$2" /etc/hosts
      echo 1 >/proc/sys/net/ipv4/ip_forward
      echo "$1" >/proc/sys/kernel/hostname
      mount --make-rshared /' "$NODE_DIR/cni" "$NODE" "$NODE_DIR/hosts" 2>&1) || return 0
    ! is_namespace "$NODE_DIR/ns/uts" || umount "$NODE_DIR/ns/uts"
    [[ $error == *"Invalid argument"* ]] || break
  done
  die "$NODE: $error"
}

# As if the plug were pulled: processes get no signal that they could see, memory and /run are lost.
node_power_off() {
  node_kill
  node_unmake_namespaces
  node_remove_cgroups
  rm -rf "$NODE_RUN"
}

node_unmake_namespaces() {
  local namespace
  for namespace in mnt uts; do
    ! is_namespace "$NODE_DIR/ns/$namespace" || umount "$NODE_DIR/ns/$namespace"
  done
  ! mountpoint -q "$NODE_DIR/ns" || umount "$NODE_DIR/ns"
  link_remove
  [ ! -e "/run/netns/$NODE_NETNS" ] || ip netns delete "$NODE_NETNS"
}

node_command() {
  local verb=${1:-} name
  [ $# -ge 2 ] || die "usage: ./dev node stop|start|cut|heal|exec NODE [COMMAND...]"
  need_root
  name=$(node_resolve "$2") || exit 1
  node_use "$name"
  [ "$verb" = exec ] || [ -n "$NODE_NETNS" ] || die "the cluster's only node is this machine: see ./dev up --nodes"
  case $verb in
    stop) node_power_off ;;
    start) node_power_on; node_run ;;
    cut) link_cut ;;
    heal) link_heal ;;
    exec) shift 2; node_exec "$@" ;;
    *) die "unknown: node $verb" ;;
  esac
}
