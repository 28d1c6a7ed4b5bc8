# The configuration files of the node in use (node_use).

write_containerd_config() {
  local restrict=false
  # Without CAP_SYS_RESOURCE runc cannot lower an oom_score_adj and pods fail to start.
  capability_sys_resource || restrict=true
  cat >"$NODE_CONF/containerd.toml" <<CONFIG
version = 2
root = "$NODE_DIR/containerd"
state = "$NODE_RUN/containerd"

[grpc]
  address = "$NODE_SOCKET"

[plugins."io.containerd.internal.v1.opt"]
  path = "$NODE_DIR/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  restrict_oom_score_adj = $restrict
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$KEELSON_CNI_BIN_DIR"
    conf_dir = "$NODE_CONF/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
CONFIG
}

# CAP_SYS_RESOURCE is bit 24 of the capability sets.
capability_sys_resource() { [ $((0x$(awk '/^CapBnd/ {print $2}' /proc/self/status) >> 24 & 1)) = 1 ]; }

# The lease is renewed four times, and the status written as often, within the time that a node may be silent.
write_kubelet_config() {
  cat >"$NODE_CONF/kubelet.yaml" <<CONFIG
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
tlsCertFile: $PKI/$NODE-serving.crt
tlsPrivateKeyFile: $PKI/$NODE-serving.key
cgroupRoot: $NODE_CGROUP
cgroupDriver: cgroupfs
podLogsDir: $NODE_DIR/pod-logs
nodeLeaseDurationSeconds: $KEELSON_NODE_GRACE
nodeStatusUpdateFrequency: $(((KEELSON_NODE_GRACE + 3) / 4))s
clusterDomain: cluster.local
clusterDNS: [$KEELSON_DNS_IP]
resolvConf: /etc/resolv.conf
failSwapOn: false
# The disk is the machine's: how full it is, is not this cluster's business.
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
imageGCHighThresholdPercent: 100
CONFIG
}

node_configure() {
  mkdir -p "$NODE_CONF/cni"
  write_containerd_config
  write_kubelet_config
}
