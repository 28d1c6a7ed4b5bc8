# What the lives of clusters of booted machines share (life.sh, documents.sh, three.sh). To be sourced, in namespaces of its own (run.sh), with the
# arguments WORK LOWER REPOSITORY VERSION PREPARED.
#
#   machines_ready NAME...        these of one, two and three have booted, with packages in /packages/first and /packages/next; nothing is
#                                 installed
#   load_images NAME              what pods need, into its containerd
#   within SECONDS WHAT COMMAND...   until it succeeds
#   hold NAME ADDRESS PORT        from that machine, connections to an echo Service that stay open, to each of its two pods
#   held WHEN, release            each of them still answers; they end
set -euo pipefail
work=$1 lower=$2 repository=$3 version=$4 prepared=$5
fail() {
  echo "FAILED: $1"
  for name in one two three; do
    [ -f "$MACHINES/$name/pid" ] || continue
    echo "--- $name"
    machine_run "$name" journalctl --no-pager -o cat -n 40 -u kubelet -u kube-controlplane -u kube-proxy -u kube-cni || true
  done
  exit 1
}
mount -t tmpfs ram "$work/ram"
MACHINES=$work/ram
source "$(dirname "${BASH_SOURCE[0]}")/machine.sh"
trap machines_clean EXIT
machines_network
control=$MACHINE_NET.10 node=$MACHINE_NET.11 third=$MACHINE_NET.12 token=abcdef.0123456789abcdef
declare -A ADDRESS=([one]=$control [two]=$node [three]=$third)

step() { echo "--- $(date +%T) $1"; }
within() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >"$work/last" 2>&1; do
    [ $SECONDS -lt $deadline ] || { cat "$work/last"; fail "$what"; }
    sleep 0.2
  done
}
kube() { machine_run one kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
took() { echo "$1: $(((${EPOCHREALTIME/./} - $2) / 1000)) ms"; }
now() { echo "${EPOCHREALTIME/./}"; }

machines_ready() {
  local name root
  for name in "$@"; do
    machine_make "$name" "$lower"
    root=$(machine_root "$name")
    mkdir -p "$root/packages" "$root/provision"
    : >"$root/etc/apt/sources.list"  # no mirror can be reached
    # Where this machine lacks CAP_SYS_RESOURCE, so do its containers.
    mkdir -p "$root/etc/systemd/system/containerd.service.d"
    cat >"$root/etc/systemd/system/containerd.service.d/test.conf" <<'UNIT'
[Service]
ExecStartPre=/bin/sh -c '{ cat /etc/containerd/config.toml; echo "[plugins.\\"io.containerd.grpc.v1.cri\\"]"; echo restrict_oom_score_adj = true; echo disable_apparmor = true; } >/run/containerd.toml'
ExecStart=
ExecStart=/usr/bin/containerd --config /run/containerd.toml
UNIT
    cp -r "$prepared/first" "$prepared/next" "$root/packages/"
    cp "$repository"/vagrant/provision/*.sh "$root/provision/"
    cp "$prepared"/images/*.tar "$root/"
    cp "$KEELSON_KUBECTL" "$root/usr/bin/kubectl"
  done
  step "machines boot: $*"
  for name in "$@"; do machine_boot "$name" "${ADDRESS[$name]}"; done
}

load_images() {
  # Debian's containerd asks for an older one.
  machine_run "$1" sh -c 'for image in /*.tar; do ctr --namespace k8s.io images import "$image"; done
    ctr --namespace k8s.io images tag registry.k8s.io/pause:3.10 registry.k8s.io/pause:3.6' >"$work/last" 2>&1 || { cat "$work/last"; fail "images on $1"; }
}

ca_hash() {
  machine_run one sh -c 'openssl x509 -pubkey -noout -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | sha256sum' | cut -d ' ' -f 1
}

# The first line of each connection names its pod.
HOLDER='
declare -A pods
connections=()
until [ ${#pods[@]} -ge 2 ] && [ ${#connections[@]} -ge 4 ]; do
  [ ${#connections[@]} -lt 64 ] || { echo "only pod ${!pods[*]}"; exit 1; }
  exec {connection}<>"/dev/tcp/$1/$2" && read -r -t 30 -u "$connection" pod || { echo "no connection"; exit 1; }
  pods[$pod]=1
  connections+=("$connection")
done
echo "${#connections[@]} connections"
while read -r word; do
  for connection in "${connections[@]}"; do
    echo "$word" >&"$connection" && read -r -t 30 -u "$connection" answer && [ "$answer" = "$word" ] || { echo "broken: ${answer:-}"; exit 1; }
  done
  echo "$word"
done'
declare -A HELD_ASK HELD_ANSWER HELD_PID
hold() {
  local name=$1 ask answer line=''
  mkfifo "$work/ask-$name" "$work/answer-$name"
  exec {ask}<>"$work/ask-$name" {answer}<>"$work/answer-$name"
  HELD_ASK[$name]=$ask HELD_ANSWER[$name]=$answer
  machine_run "$name" bash -c "$HOLDER" - "$2" "$3" <"$work/ask-$name" >"$work/answer-$name" 2>&1 &
  HELD_PID[$name]=$!
  read -r -t 90 -u "$answer" line && [[ $line == *" connections" ]] || fail "connections from $name: $line"
}
held() {
  local name line word
  for name in "${!HELD_ASK[@]}"; do
    word="still-$RANDOM" line=''
    echo "$word" >&"${HELD_ASK[$name]}"
    read -r -t 90 -u "${HELD_ANSWER[$name]}" line && [ "$line" = "$word" ] || fail "$1, a connection from $name: $line"
  done
}
release() {
  local name
  for name in "${!HELD_ASK[@]}"; do
    kill "${HELD_PID[$name]}" 2>/dev/null || true
    wait "${HELD_PID[$name]}" 2>/dev/null || true
  done
}

pods_on_two() { kube get pods -o 'jsonpath={range .items[?(@.spec.nodeName=="two")]}{.metadata.uid} {.status.containerStatuses[*].containerID}{"\n"}{end}'; }
ready_pods() { [ "$(kube get pods -l app=web -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' | grep -c True)" = 2 ]; }
restarted() { [ "$(kube get pods -l app=web -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}' | tr ' ' '\n' | grep -c '[1-9]')" -gt 0 ]; }

nothing_left() {  # NAME...
  local name left
  for name in "$@"; do
    left=$(machine_run $name sh -c 'ls -d /etc/kubernetes/*.conf /etc/kubernetes/pki/* /var/lib/kubelet/config.yaml /var/lib/keelson/controlplane/* /etc/cni/net.d/* /etc/kubernetes/manifests/* 2>/dev/null; nft list tables 2>/dev/null; ip -o link show | grep -E "keelson|veth"; ps -eo pid=,comm= | grep -E " (kubelet|kube-|etcd)"') || true
    [ -z "$left" ] || fail "reset leaves on $name: $left"
  done
}
