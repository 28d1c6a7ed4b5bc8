# A cluster on this machine: up is idempotent and repairs, down removes all of it.

prepare_kernel() {
  local module
  for module in overlay br_netfilter nf_tables vxlan; do
    modprobe "$module" 2>/dev/null || true  # built in, or absent: the kernel says so when it is needed
  done
}

# Sockets and container state of a machine that has been rebooted since are worthless.
forget_previous_boot() {
  local boot
  boot=$(cat /proc/sys/kernel/random/boot_id)
  if [ -f "$KEELSON_DIR/boot_id" ] && [ "$(cat "$KEELSON_DIR/boot_id")" != "$boot" ]; then rm -rf "$KEELSON_DIR"/nodes/*/run; fi
  mkdir -p "$KEELSON_DIR" "$CONF"
  echo "$boot" >"$KEELSON_DIR/boot_id"
}

# up [--nodes N [--control-planes M]]. Without them a cluster keeps the nodes that it has; nodes can be added but not taken
# away, and control planes stay.
parse_up() {
  local nodes='' control_planes=''
  while [ $# -gt 0 ]; do
    case $1 in
      --nodes) nodes=${2:-} && shift 2 ;;
      --nodes=*) nodes=${1#*=} && shift ;;
      --control-planes) control_planes=${2:-} && shift 2 ;;
      --control-planes=*) control_planes=${1#*=} && shift ;;
      *) die "usage: ./dev up [--nodes N [--control-planes 1|3|5]]" ;;
    esac
  done
  [ -n "$nodes$control_planes" ] || return 0
  [ -n "$nodes" ] || nodes=${CLUSTER_NODES:-$control_planes}
  [[ $nodes =~ ^[1-9][0-9]?$ ]] || die "--nodes takes a number from 1 to 99"
  if [ -f "$KEELSON_DIR/cluster" ]; then
    [ "$nodes" -ge "${CLUSTER_NODES:-100}" ] ||
      die "the cluster in $KEELSON_DIR has ${CLUSTER_NODES:-this machine as its only} node(s): run ./dev down first"
    [ "${control_planes:-$CLUSTER_CONTROL_PLANES}" = "$CLUSTER_CONTROL_PLANES" ] ||
      die "the cluster in $KEELSON_DIR has $CLUSTER_CONTROL_PLANES control plane(s): run ./dev down first"
  fi
  # Two of two or of four members that must answer are no gain over one of one or two of three.
  [[ ${control_planes:-1} =~ ^[135]$ ]] || die "--control-planes takes 1, 3 or 5: etcd needs most of its members"
  [ "${control_planes:-1}" -le "$nodes" ] || die "$control_planes control planes need as many nodes: see --nodes"
  CLUSTER_NODES=$nodes
  CLUSTER_CONTROL_PLANES=${control_planes:-$CLUSTER_CONTROL_PLANES}
  choose_subnet
}

# Everything that must run on the node. The API server is not waited for: agents try until it answers.
node_run() {
  local daemon
  node_configure
  step "$NODE: containerd"
  daemon_start_and_wait containerd
  images_import "$KEELSON_DIR/images/pause.tar" "$KEELSON_DIR/images/busybox.tar"
  for daemon in $(node_daemons); do daemon_start "$daemon"; done
  step "$NODE: waiting for its agents"
  for daemon in $(node_daemons); do daemon_wait "$daemon"; done
}

# on_control_planes COMMAND...: once a node that runs the control plane.
on_control_planes() {
  local name
  for name in "${CONTROL_PLANES[@]}"; do (node_use "$name"; "$@"); done
}

control_plane_wait() {
  on_control_planes daemon_wait kube-controlplane
  [ "$KEELSON_CNI" = none ] || run_kubectl apply -f "$ROOT/cni/agent/rbac.yaml" >/dev/null
  [ -z "$KEELSON_DNS_IP" ] || sed "s/10\.96\.0\.10/$KEELSON_DNS_IP/" "$ROOT/proxy/dns/kube-dns.yaml" | run_kubectl apply -f - >/dev/null
  storage_objects
  [[ ${KEELSON_PROXY_FLAGS:-} != *--announce-addresses* ]] || run_kubectl apply -f "$ROOT/proxy/announce/rbac.yaml" >/dev/null
}

cluster_up() {
  need_root
  parse_up "$@"
  deps_install
  if [ -n "${KEELSON_BIN:-}" ]; then programs_check; else build "${PROGRAMS[@]}" nodectl; fi
  forget_previous_boot
  cluster_save
  cluster_load
  step "keys and certificates"
  pki_make
  each_node pki_node
  prepare_kernel
  network_make
  each_node node_power_on
  step "control plane"
  on_control_planes daemon_start kube-controlplane
  step "images"
  images_make
  control_plane_wait
  each_node_at_once node_run
  if [ "$KEELSON_CNI" != none ]; then
    step "waiting for the nodes to be Ready"
    await 60 "all nodes to be Ready" run_kubectl wait --for=condition=Ready --timeout=2s "${NODES[@]/#/node/}"
    [ "${KEELSON_DEMO:-yes}" = no ] || demo
  fi
  step "up"
  summary
}

programs_check() {
  local program
  for program in "${PROGRAMS[@]}"; do
    [ -x "$BIN/$program" ] || [ -x "$KEELSON_CNI_BIN_DIR/$program" ] || die "$BIN has no $program"
  done
}

demo() {
  step "demo: a Deployment of 3 replicas behind a ClusterIP and a NodePort Service"
  run_kubectl apply -f "$ROOT/tools/dev/demo.yaml" >/dev/null
  await 120 "the demo's pods to be ready" run_kubectl rollout status deployment/web --timeout=5s
  local cluster_ip node_port
  cluster_ip=$(run_kubectl get service web -o 'jsonpath={.spec.clusterIP}')
  node_port=$(run_kubectl get service web-nodeport -o 'jsonpath={.spec.ports[0].nodePort}')
  each_node demo_fetch "$cluster_ip" "$node_port"
}

demo_fetch() {
  local url
  for url in "http://$1/" "http://$NODE_IP:$2/"; do
    await 30 "$url to answer on $NODE" in_node curl -fsS -m 2 "$url"
    step "  $NODE: $url -> $(in_node curl -fsS -m 2 "$url")"
  done
}

summary() {
  cluster_status
  cat <<TEXT

  ./dev kubectl get pods -o wide       or: export KUBECONFIG=$CONF/admin.kubeconfig
  ./dev status | ./dev test | ./dev down
TEXT
}

# ---- down ----
# Where the machine is the node, containers are removed while containerd can still do it: it keeps files of
# theirs outside our directory. A node in namespaces takes everything along.
containers_remove() {
  local id
  daemon_pid containerd >/dev/null || return 0
  for id in $(ctr_ tasks ls -q); do ctr_ tasks delete --force "$id" >/dev/null 2>&1 || true; done
  for id in $(ctr_ containers ls -q); do ctr_ containers delete "$id" >/dev/null 2>&1 || true; done
}

# What the CNI plugins have made for containers that were taken from under them: none of it is in use.
cni_forget() {
  local table family
  [ ! -x "$BIN/bandwidth" ] || CNI_COMMAND=GC CNI_PATH=$BIN "$BIN/bandwidth" >/dev/null <<CONFIG || true
{"cniVersion": "1.1.0", "name": "keelson", "type": "bandwidth", "cni.dev/valid-attachments": []}
CONFIG
  for table in keelson-cni keelson-portmap; do nft delete table inet $table 2>/dev/null || true; done
  for family in inet bridge; do nft delete table $family keelson-policy 2>/dev/null || true; done
  ip link delete "$KEELSON_BRIDGE" 2>/dev/null || true
}

node_remove() {
  local daemon
  if [ -n "$NODE_NETNS" ]; then
    node_power_off
    return
  fi
  for daemon in kubelet keelson-csi-controller keelson-csi-local kube-cni kube-proxy kube-controlplane; do daemon_stop "$daemon"; done
  containers_remove
  daemon_stop containerd
  node_kill
  [ ! -x "$BIN/kube-proxy" ] || "$BIN/kube-proxy" --cleanup >/dev/null 2>&1 || true
  [ ! -x "$BIN/kube-cni" ] || "$BIN/kube-cni" --cleanup --cni-conf-dir "$NODE_CONF/cni" >/dev/null 2>&1 || true
  cni_forget
  node_remove_cgroups
}

cluster_down() {
  need_root
  [ -d "$KEELSON_DIR" ] || { step "nothing to remove: $KEELSON_DIR does not exist"; return 0; }
  step "stopping ${#NODES[@]} node(s)"
  each_node_at_once node_remove
  step "removing network, mounts and cgroups"
  network_remove
  awk -v dir="$KEELSON_DIR/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r |
    while read -r mount; do umount -l "$mount" 2>/dev/null || true; done
  storage_forget
  local dir
  for dir in $(cgroup_hierarchies); do
    [ ! -d "$dir$KEELSON_CGROUP_ROOT" ] || find "$dir$KEELSON_CGROUP_ROOT" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
  rm -rf "$KEELSON_DIR"
  step "down"
}
