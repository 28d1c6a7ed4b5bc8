# Settings and helpers of the ./dev script. Everything of one cluster lives below KEELSON_DIR:
#
#   pki/ conf/ images/ controlplane/   the cluster's
#   cluster                            arguments of `up`: the number of nodes, their subnet
#   nodes/NAME/                        a node's: conf run log containerd kubelet pod-logs cni (see node.sh)

# use_preset NAME: what is compiled and run from here on.
use_preset() {
  export KEELSON_PRESET=$1
  BUILD=$ROOT/build/$KEELSON_PRESET
  BIN=$(realpath -m "${KEELSON_BIN:-$BUILD/bin}")
}
use_preset "${KEELSON_PRESET:-release}"
KEELSON_DIR=$(realpath -m "${KEELSON_DIR:-/var/lib/keelson-dev}")
PKI=$KEELSON_DIR/pki
CONF=$KEELSON_DIR/conf

# The first address of an IPv4 range given as A.B.C.D/N, plus an offset in the last octet.
cidr_address() {
  local base=${1%/*}
  printf '%s.%d' "${base%.*}" $((${base##*.} + $2))
}

# Names of what the cluster makes outside KEELSON_DIR contain this, so that clusters do not meet.
KEELSON_ID=$(printf %s "$KEELSON_DIR" | sha256sum | cut -c1-8)
KEELSON_NODE_NAME=${KEELSON_NODE_NAME:-node1}
KEELSON_API_PORT=${KEELSON_API_PORT:-6443}
API_NAME=api.keelson.internal
KEELSON_KUBELET_PORT=${KEELSON_KUBELET_PORT:-10250}
KEELSON_KUBELET_HEALTHZ_PORT=${KEELSON_KUBELET_HEALTHZ_PORT:-10248}
KEELSON_PROXY_HEALTHZ_PORT=${KEELSON_PROXY_HEALTHZ_PORT:-10256}
KEELSON_PROXY_METRICS_PORT=${KEELSON_PROXY_METRICS_PORT:-10249}
KEELSON_CNI_HEALTHZ_PORT=${KEELSON_CNI_HEALTHZ_PORT:-10261}
KEELSON_CNI_METRICS_PORT=${KEELSON_CNI_METRICS_PORT:-10262}
KEELSON_POD_CIDR=${KEELSON_POD_CIDR:-10.244.0.0/16}
KEELSON_SERVICE_CIDR=${KEELSON_SERVICE_CIDR:-10.96.0.0/16}
# kube-proxy answers the cluster's DNS here; empty: it does not.
KEELSON_DNS_IP=${KEELSON_DNS_IP-$(cidr_address "$KEELSON_SERVICE_CIDR" 10)}
KEELSON_CGROUP_ROOT=${KEELSON_CGROUP_ROOT:-/keelson-$KEELSON_ID}
KEELSON_BRIDGE=${KEELSON_BRIDGE:-keelson0}
KEELSON_NODE_GRACE=${KEELSON_NODE_GRACE:-40}
KEELSON_CNI=${KEELSON_CNI:-keelson}
KEELSON_CNI_MODE=${KEELSON_CNI_MODE:-auto}
KEELSON_CNI_BIN_DIR=${KEELSON_CNI_BIN_DIR:-$BIN}
PROGRAMS=(kube-controlplane kubelet kube-proxy kube-cni bridge host-local keelson-policy loopback portmap bandwidth)
DAEMONS=(containerd kube-controlplane kubelet kube-proxy kube-cni)

die() {
  printf 'dev: %s\n' "$*" >&2
  exit 1
}

# step TEXT: says what is being done, with the seconds since the command began.
step() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

need_root() { [ "$(id -u)" = 0 ] || die "this command needs root"; }

# await SECONDS WHAT COMMAND...: repeats the command until it succeeds; on time-out shows its last output.
await() {
  local limit=$1 what=$2 output end
  shift 2
  end=$((SECONDS + limit))
  until output=$("$@" 2>&1); do
    if [ "$SECONDS" -ge "$end" ]; then
      printf '%s\n' "$output" | tail -n 20 >&2
      die "gave up after ${limit} s waiting for $what"
    fi
    sleep 0.2
  done
}

# The address that other machines reach this one by, or the first one that is not loopback.
host_ip() {
  if [ -n "${KEELSON_NODE_IP:-}" ]; then
    printf '%s' "$KEELSON_NODE_IP"
    return
  fi
  local ip
  ip=$(ip -4 -o route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -n 1)
  [ -n "$ip" ] || ip=$(ip -4 -o addr show scope global | awk '{sub("/.*", "", $4); print $4; exit}')
  [ -n "$ip" ] || die "this machine has no IPv4 address but loopback; set KEELSON_NODE_IP"
  printf '%s' "$ip"
}
