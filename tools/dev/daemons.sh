# A node's processes: each has a pid file, a log and a health check. A daemon that runs is left alone, so
# starting all of them again repairs what has died. All functions are about the node in use (node_use).

# The daemons that this node is to have, in the order they start.
node_daemons() {
  echo containerd
  ! runs_control_plane || echo kube-controlplane
  echo kubelet
  echo kube-proxy
  [ "$KEELSON_CNI" = none ] || echo kube-cni
  storage_daemons
}

daemon_pid() {
  local pid
  pid=$(cat "$NODE_RUN/$1.pid" 2>/dev/null) || return 1
  # Another process may have the pid by now: compare the start time. Z: ended, but not waited for.
  [ "$(awk '$3 != "Z" {print $22}' "/proc/${pid%% *}/stat" 2>/dev/null)" = "${pid##* }" ] || return 1
  printf '%s' "${pid%% *}"
}

# The cluster of etcd that the control planes begin together: NAME=PEER-URL,...
etcd_members() {
  local name members=()
  for name in "${CONTROL_PLANES[@]}"; do members+=("$name=https://$(node_ip "$name"):2380"); done
  (IFS=,; printf %s "${members[*]}")
}

# daemon_command NAME: sets COMMAND.
daemon_command() {
  local data=$KEELSON_DIR/controlplane
  ! several_control_planes || data=$NODE_DIR/controlplane
  case $1 in
    containerd) COMMAND=(containerd --config "$NODE_CONF/containerd.toml") ;;
    kube-controlplane)
      COMMAND=("$BIN/kube-controlplane" --data-dir "$data" --bind-address 0.0.0.0
        --advertise-address "$NODE_IP" --secure-port "$KEELSON_API_PORT"
        --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key"
        --allow-privileged=true --client-ca-file "$PKI/ca.crt" --root-ca-file "$PKI/ca.crt"
        --service-account-issuer https://kubernetes.default.svc.cluster.local
        --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key"
        --service-cluster-ip-range "$KEELSON_SERVICE_CIDR" --allocate-node-cidrs=true --cluster-cidr "$KEELSON_POD_CIDR"
        --node-monitor-grace-period "${KEELSON_NODE_GRACE}s" --node-monitor-period "$(((KEELSON_NODE_GRACE + 7) / 8))s"
        --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" --enable-bootstrap-token-auth=true
        --kubelet-client-certificate "$PKI/apiserver-kubelet-client.crt"
        --kubelet-client-key "$PKI/apiserver-kubelet-client.key" --kubelet-certificate-authority "$PKI/ca.crt"
        --proxy-client-cert-file "$PKI/front-proxy-client.crt" --proxy-client-key-file "$PKI/front-proxy-client.key"
        --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client
        --requestheader-username-headers X-Remote-User --requestheader-uid-headers X-Remote-Uid
        --requestheader-group-headers X-Remote-Group --requestheader-extra-headers-prefix X-Remote-Extra-)
      ! several_control_planes || COMMAND+=(--peer-ca-file "$PKI/ca.crt" --etcd-address "$NODE_IP" --etcd-name "$NODE"
        --etcd-initial-cluster "$(etcd_members)" --etcd-initial-cluster-state new --etcd-pki-dir "$PKI/etcd-$NODE"
        --etcd-cafile "$PKI/etcd-ca.crt" --etcd-certfile "$PKI/etcd-client.crt" --etcd-keyfile "$PKI/etcd-client.key")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_API_FLAGS:-})
      ;;
    kubelet)
      COMMAND=("$BIN/kubelet" --config "$NODE_CONF/kubelet.yaml" --kubeconfig "$NODE_CONF/kubelet.kubeconfig"
        --hostname-override "$NODE" --node-ip "$NODE_IP" --root-dir "$NODE_DIR/kubelet"
        --container-runtime-endpoint "unix://$NODE_SOCKET")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_KUBELET_FLAGS:-})
      ;;
    kube-proxy)
      COMMAND=("$BIN/kube-proxy" --kubeconfig "$CONF/kube-proxy.kubeconfig" --hostname-override "$NODE"
        --cluster-cidr "$KEELSON_POD_CIDR" --healthz-bind-address "127.0.0.1:$KEELSON_PROXY_HEALTHZ_PORT"
        --metrics-bind-address "127.0.0.1:$KEELSON_PROXY_METRICS_PORT"
        ${KEELSON_DNS_IP:+--cluster-dns-address "$KEELSON_DNS_IP"})
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_PROXY_FLAGS:-})
      ;;
    kube-cni)
      COMMAND=("$BIN/kube-cni" --kubeconfig "$CONF/kube-cni.kubeconfig" --node-name "$NODE"
        --cni-conf-dir "$NODE_CONF/cni" --cni-data-dir "$NODE_RUN/cni" --cni-bin-dir "$KEELSON_CNI_BIN_DIR"
        --bridge "$KEELSON_BRIDGE"
        --cluster-cidr "$KEELSON_POD_CIDR" --mode "$KEELSON_CNI_MODE" --healthz-bind-address "127.0.0.1:$KEELSON_CNI_HEALTHZ_PORT"
        --metrics-bind-address "127.0.0.1:$KEELSON_CNI_METRICS_PORT")
      # shellcheck disable=SC2206
      COMMAND+=(${KEELSON_CNI_FLAGS:-})
      ;;
    keelson-csi-*) storage_command "$1" ;;
    *) die "no such daemon: $1 (${DAEMONS[*]})" ;;
  esac
}

daemon_healthy() {
  local get=(in_node curl -fsS -m 2)
  case $1 in
    containerd) ctr --address "$NODE_SOCKET" --timeout 2s version ;;
    kube-controlplane) "${get[@]}" --cacert "$PKI/ca.crt" "https://127.0.0.1:$KEELSON_API_PORT/readyz" ;;
    kubelet) "${get[@]}" "http://127.0.0.1:$KEELSON_KUBELET_HEALTHZ_PORT/healthz" ;;
    kube-proxy) "${get[@]}" "http://127.0.0.1:$KEELSON_PROXY_HEALTHZ_PORT/healthz" ;;
    kube-cni) "${get[@]}" "http://127.0.0.1:$KEELSON_CNI_HEALTHZ_PORT/healthz" ;;
    keelson-csi-*) storage_healthy "$1" ;;
  esac >/dev/null
}

daemon_start() {
  local name=$1 pid COMMAND
  ! daemon_pid "$name" >/dev/null || return 0
  daemon_command "$name"
  # Neither setsid, which makes no child where it need not, nor what it becomes changes the pid.
  (node_exec setsid "${COMMAND[@]}") >>"$NODE_LOGS/$name.log" 2>&1 </dev/null &
  pid=$!
  printf '%s %s' "$pid" "$(awk '{print $22}' "/proc/$pid/stat")" >"$NODE_RUN/$name.pid"
}

daemon_stop() {
  local pid
  pid=$(daemon_pid "$1") || return 0
  kill -TERM "$pid" 2>/dev/null || true
  await 20 "$1 to end" bash -c "! kill -0 $pid 2>/dev/null"
  rm -f "$NODE_RUN/$1.pid"
}

daemon_wait() {
  local end=$((SECONDS + 60))
  until daemon_healthy "$1" 2>/dev/null; do
    daemon_pid "$1" >/dev/null || { tail -n 20 "$NODE_LOGS/$1.log" >&2; die "$NODE: $1 ended; its log is $NODE_LOGS/$1.log"; }
    [ "$SECONDS" -lt "$end" ] || { tail -n 20 "$NODE_LOGS/$1.log" >&2; die "$NODE: $1 is not healthy after 60 s; its log is $NODE_LOGS/$1.log"; }
    sleep 0.1
  done
}

daemon_start_and_wait() {
  daemon_start "$1"
  daemon_wait "$1"
}

start_here() {
  # To its end: grep -q would go on the first match, and who then still writes fails, and all with it.
  if node_daemons | grep -x -- "$1" >/dev/null; then
    node_is_on || die "$NODE is powered off: ./dev node start $NODE"
    daemon_start_and_wait "$1"
  fi
}

stop_here() { daemon_stop "$1"; }

# start|stop NAME [NODE]: on that node, or on all that have it.
daemon_control() {
  local verb=$1 name=${2:-} which
  need_root
  [[ " ${DAEMONS[*]} " == *" $name "* ]] || die "usage: ./dev $verb NAME [NODE]; names: ${DAEMONS[*]}"
  if [ $# -gt 2 ]; then
    which=$(node_resolve "$3") || exit 1
    (node_use "$which"; "${verb}_here" "$name")
  else
    each_node_at_once "${verb}_here" "$name"
  fi
}

node_status() {
  local name pid health
  ! link_is_cut || health='cut off'
  node_is_on || health='powered off'
  [ -z "${health:-}" ] || printf '%-8s %s\n' "$NODE" "$health"
  for name in $(node_daemons); do
    pid=$(daemon_pid "$name") || pid=-
    if [ "$pid" = - ]; then health=stopped; elif daemon_healthy "$name" 2>/dev/null; then health=ok; else health=unhealthy; fi
    printf '%-8s %-22s %-8s %-10s %s\n' "$NODE" "$name" "$pid" "$health" "$NODE_LOGS/$name.log"
  done
}

cluster_status() {
  printf '%-8s %-22s %-8s %-10s %s\n' NODE DAEMON PID HEALTH LOG
  each_node node_status
}
