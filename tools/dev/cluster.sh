# A one-node cluster on this machine: up is idempotent, down removes all of it.

write_containerd_config() {
  local restrict=false
  # Without CAP_SYS_RESOURCE runc cannot lower an oom_score_adj and pods fail to start.
  capability_sys_resource || restrict=true
  cat >"$CONF/containerd.toml" <<CONFIG
version = 2
root = "$KEELSON_DIR/containerd"
state = "$RUN/containerd"

[grpc]
  address = "$CONTAINERD_SOCKET"

[plugins."io.containerd.internal.v1.opt"]
  path = "$KEELSON_DIR/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  restrict_oom_score_adj = $restrict
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$BIN"
    conf_dir = "$CONF/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
CONFIG
}

# CAP_SYS_RESOURCE is bit 24 of the capability sets.
capability_sys_resource() { [ $((0x$(awk '/^CapBnd/ {print $2}' /proc/self/status) >> 24 & 1)) = 1 ]; }

write_cni_config() {
  mkdir -p "$CONF/cni"
  cat >"$CONF/cni/10-keelson.conflist" <<CONFIG
{
  "cniVersion": "1.0.0",
  "name": "keelson",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "$KEELSON_BRIDGE",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipMasq": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "$RUN/cni",
        "ranges": [[{"subnet": "$KEELSON_POD_CIDR"}]]
      }
    }
  ]
}
CONFIG
}

write_kubelet_config() {
  cat >"$CONF/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
port: $KEELSON_KUBELET_PORT
healthzBindAddress: 127.0.0.1
healthzPort: $KEELSON_KUBELET_HEALTHZ_PORT
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $PKI/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet-serving.crt
tlsPrivateKeyFile: $PKI/kubelet-serving.key
cgroupRoot: $KEELSON_CGROUP_ROOT
cgroupDriver: cgroupfs
podLogsDir: $KEELSON_DIR/pod-logs
clusterDomain: cluster.local
clusterDNS: [$(cidr_address "$KEELSON_SERVICE_CIDR" 10)]
resolvConf: /etc/resolv.conf
CONFIG
}

prepare_kernel() {
  local module
  for module in overlay br_netfilter nf_tables; do
    modprobe "$module" 2>/dev/null || true  # built in, or absent: the kernel says so when it is needed
  done
  echo 1 >/proc/sys/net/ipv4/ip_forward
}

# Sockets and container state of a machine that has been rebooted since are worthless.
forget_previous_boot() {
  local boot
  boot=$(cat /proc/sys/kernel/random/boot_id)
  if [ -f "$KEELSON_DIR/boot_id" ] && [ "$(cat "$KEELSON_DIR/boot_id")" != "$boot" ]; then rm -rf "$RUN"; fi
  mkdir -p "$KEELSON_DIR" "$RUN" "$CONF" "$LOGS"
  echo "$boot" >"$KEELSON_DIR/boot_id"
}

cluster_up() {
  need_root
  deps_install
  build "${PROGRAMS[@]}"
  forget_previous_boot
  step "keys and certificates"
  pki_make
  prepare_kernel
  write_containerd_config
  write_cni_config
  write_kubelet_config
  step "images"
  images_make
  step "containerd"
  # File descriptors: containerd asks for more than some hosts allow, and then refuses to start.
  daemon_start_and_wait containerd
  images_import "$KEELSON_DIR/images/pause.tar" "$KEELSON_DIR/images/busybox.tar"
  step "control plane"
  daemon_start_and_wait kube-controlplane
  step "kubelet and kube-proxy"
  daemon_start kubelet
  daemon_start_and_wait kube-proxy
  daemon_start_and_wait kubelet
  await 60 "node $KEELSON_NODE_NAME to be Ready" \
    run_kubectl wait --for=condition=Ready --timeout=1s "node/$KEELSON_NODE_NAME"
  [ "${KEELSON_DEMO:-yes}" = no ] || demo
  step "up"
  summary
}

demo() {
  step "demo: a Deployment of 3 replicas behind a ClusterIP and a NodePort Service"
  run_kubectl apply -f "$ROOT/tools/dev/demo.yaml" >/dev/null
  await 120 "the demo's pods to be ready" run_kubectl rollout status deployment/web --timeout=5s
  local cluster_ip node_port
  cluster_ip=$(run_kubectl get service web -o 'jsonpath={.spec.clusterIP}')
  node_port=$(run_kubectl get service web-nodeport -o 'jsonpath={.spec.ports[0].nodePort}')
  await 30 "http://$cluster_ip/ to answer" curl -fsS -m 2 "http://$cluster_ip/"
  step "  http://$cluster_ip/ (ClusterIP): $(curl -fsS -m 2 "http://$cluster_ip/")"
  await 30 "http://$(node_ip):$node_port/ to answer" curl -fsS -m 2 "http://$(node_ip):$node_port/"
  step "  http://$(node_ip):$node_port/ (NodePort): $(curl -fsS -m 2 "http://$(node_ip):$node_port/")"
}

summary() {
  cluster_status
  cat <<TEXT

  ./dev kubectl get pods -o wide       or: export KUBECONFIG=$CONF/admin.kubeconfig
  ./dev status | ./dev test | ./dev down
TEXT
}

# Removes containers first, while containerd can still do it; then what they stood on.
cluster_down() {
  need_root
  [ -d "$KEELSON_DIR" ] || { step "nothing to remove: $KEELSON_DIR does not exist"; return 0; }
  step "stopping daemons"
  daemon_stop kubelet
  daemon_stop kube-proxy
  daemon_stop kube-controlplane
  if daemon_pid containerd >/dev/null; then
    step "removing containers"
    local id
    for id in $(ctr_ tasks ls -q); do ctr_ tasks delete --force "$id" >/dev/null 2>&1 || true; done
    for id in $(ctr_ containers ls -q); do ctr_ containers delete "$id" >/dev/null 2>&1 || true; done
    daemon_stop containerd
  fi
  step "removing network, mounts and cgroups"
  [ ! -x "$BIN/kube-proxy" ] || "$BIN/kube-proxy" --cleanup >/dev/null 2>&1 || true
  nft delete table inet keelson-cni 2>/dev/null || true
  ip link delete "$KEELSON_BRIDGE" 2>/dev/null || true
  awk -v dir="$KEELSON_DIR/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r |
    while read -r mount; do umount -l "$mount" 2>/dev/null || true; done
  local hierarchy
  for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -d "$hierarchy$KEELSON_CGROUP_ROOT" ] || continue
    find "$hierarchy$KEELSON_CGROUP_ROOT" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
  rm -rf "$KEELSON_DIR"
  step "down"
}
