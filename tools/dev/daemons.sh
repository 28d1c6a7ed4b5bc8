# The cluster's processes: each has a pid file, a log and a health check. A daemon that runs is left alone,
# so starting all of them again repairs what has died.

daemon_pid() {
  local pid
  pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 1
  # A pid may have been given to somebody else meanwhile: the start time tells.
  [ "$(awk '{print $22}' "/proc/${pid%% *}/stat" 2>/dev/null)" = "${pid##* }" ] || return 1
  printf '%s' "${pid%% *}"
}

daemon_command() {
  local ip
  ip=$(node_ip)
  case $1 in
    containerd) echo containerd --config "$CONF/containerd.toml" ;;
    kube-controlplane)
      echo "$BIN/kube-controlplane" --data-dir "$KEELSON_DIR/controlplane" --bind-address 0.0.0.0 --advertise-address "$ip" \
        --secure-port "$KEELSON_API_PORT" --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
        --client-ca-file "$PKI/ca.crt" --root-ca-file "$PKI/ca.crt" \
        --service-account-issuer https://kubernetes.default.svc.cluster.local \
        --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key" \
        --service-cluster-ip-range "$KEELSON_SERVICE_CIDR" \
        --kubelet-client-certificate "$PKI/apiserver-kubelet-client.crt" \
        --kubelet-client-key "$PKI/apiserver-kubelet-client.key" --kubelet-certificate-authority "$PKI/ca.crt"
      ;;
    kubelet)
      echo "$BIN/kubelet" --config "$CONF/kubelet.yaml" --kubeconfig "$CONF/kubelet.kubeconfig" \
        --hostname-override "$KEELSON_NODE_NAME" --node-ip "$ip" --root-dir "$KEELSON_DIR/kubelet" \
        --container-runtime-endpoint "unix://$CONTAINERD_SOCKET"
      ;;
    kube-proxy)
      echo "$BIN/kube-proxy" --kubeconfig "$CONF/kube-proxy.kubeconfig" --hostname-override "$KEELSON_NODE_NAME" \
        --cluster-cidr "$KEELSON_POD_CIDR" --healthz-bind-address "127.0.0.1:$KEELSON_PROXY_HEALTHZ_PORT" \
        --metrics-bind-address "127.0.0.1:$KEELSON_PROXY_METRICS_PORT"
      ;;
    *) die "no such daemon: $1 (${DAEMONS[*]})" ;;
  esac
}

daemon_healthy() {
  case $1 in
    containerd) ctr --address "$CONTAINERD_SOCKET" --timeout 2s version ;;
    kube-controlplane) curl -fsS -m 2 --cacert "$PKI/ca.crt" "https://127.0.0.1:$KEELSON_API_PORT/readyz" ;;
    kubelet) curl -fsS -m 2 "http://127.0.0.1:$KEELSON_KUBELET_HEALTHZ_PORT/healthz" ;;
    kube-proxy) curl -fsS -m 2 "http://127.0.0.1:$KEELSON_PROXY_HEALTHZ_PORT/healthz" ;;
  esac >/dev/null
}

daemon_start() {
  local name=$1 command pid
  ! daemon_pid "$name" >/dev/null || return 0
  command=$(daemon_command "$name")
  mkdir -p "$RUN" "$LOGS"
  # shellcheck disable=SC2086
  setsid $command >>"$LOGS/$name.log" 2>&1 </dev/null &
  pid=$!
  # setsid makes no child where it need not: $! is the daemon itself.
  printf '%s %s' "$pid" "$(awk '{print $22}' "/proc/$pid/stat")" >"$RUN/$name.pid"
}

daemon_stop() {
  local pid
  pid=$(daemon_pid "$1") || return 0
  kill -TERM "$pid" 2>/dev/null || true
  await 20 "$1 to end" bash -c "! kill -0 $pid 2>/dev/null"
  rm -f "$RUN/$1.pid"
}

daemon_start_and_wait() {
  daemon_start "$1"
  local end=$((SECONDS + 60))
  until daemon_healthy "$1" 2>/dev/null; do
    daemon_pid "$1" >/dev/null || { tail -n 20 "$LOGS/$1.log" >&2; die "$1 ended; its log is $LOGS/$1.log"; }
    [ "$SECONDS" -lt "$end" ] || { tail -n 20 "$LOGS/$1.log" >&2; die "$1 is not healthy after 60 s; its log is $LOGS/$1.log"; }
    sleep 0.1
  done
}

cluster_status() {
  local name pid health
  printf '%-18s %-8s %-10s %s\n' DAEMON PID HEALTH LOG
  for name in "${DAEMONS[@]}"; do
    pid=$(daemon_pid "$name") || pid=-
    if [ "$pid" = - ]; then health=stopped; elif daemon_healthy "$name" 2>/dev/null; then health=ok; else health=unhealthy; fi
    printf '%-18s %-8s %-10s %s\n' "$name" "$pid" "$health" "$LOGS/$name.log"
  done
}
