# Tests and benchmarks.

run_tests() {
  local which=${1:-all}
  [ $# -eq 0 ] || shift
  need_root
  if [ "$which" = soak ]; then
    run_soak "$@"
    return
  fi
  [ "$which" != vm ] || TEST_PACKAGES+=("${VM_PACKAGES[@]}")
  case $which in asan | tsan) use_preset "$which" ;; esac
  deps_install
  build
  # Before any test: those of whole clusters run in namespaces that cannot fetch a package.
  local kubectl
  kubectl=$(kubectl_path)
  export PATH=$PATH:${kubectl%/*}
  case $which in all | root) newer_runtimes ;; esac
  case $which in all | root | e2e | vm) packages_test_root ;; esac
  local labels=()
  case $which in
    asan | tsan) labels=(-L '^(unit|netns|root)$') ;;
    all) labels=(-LE '^(vm|storm)$') ;;  # an emulated processor, and random kills, are asked for by name
    vm) labels=(-L '^(vm|machines)$') ;;  # the booted machines too, which need no emulation
    unit | netns | root | e2e | storm) labels=(-L "^$which\$") ;;
    *) die "unknown tests: $which" ;;
  esac
  step "tests"
  rm -f "$BUILD/Testing/Temporary/LastTestsFailed.log"  # that of an earlier run says nothing of this one
  run_ctest -j "$(nproc)" "${labels[@]}" "$@" || failed_tests_alone
}

# run_soak [MINUTES] [ARGUMENTS of tests/consistency/run.py...]
run_soak() {
  local minutes=${1:-30}
  [ $# -eq 0 ] || shift
  deps_install
  build kube-controlplane
  step "$minutes minutes of faults"
  python3 "$ROOT/tests/consistency/run.py" "$BUILD/bin/kube-controlplane" --minutes "$minutes" --objects 10000 --writers 100 --watchers 100 \
    --keys 50 --pause 1 --compaction 30s --flat "$@"
}

run_ctest() {
  ctest --test-dir "$BUILD" --output-on-failure --no-tests=error "$@"
}

# Tests of the kernel, a runtime or whole clusters meet whatever else the machine does: a few that have failed run once
# more, one at a time. A unit test has no such excuse.
failed_tests_alone() {
  local failed unit
  failed=$(cut -d: -f2- "$BUILD/Testing/Temporary/LastTestsFailed.log") || return 1
  unit=$(ctest --test-dir "$BUILD" -N -L '^unit$' | sed -n 's/^ *Test *#[0-9]*: //p' | grep -Fx "$failed") || true
  [ -z "$unit" ] && [ "$(wc -l <<<"$failed")" -le 5 ] || return 1
  step "once more, alone, what has failed:" $failed
  run_ctest --rerun-failed
}

# Newer versions of containerd, to test with as well. Without a mirror their tests say so and are skipped.
newer_runtimes() {
  local suite
  for suite in trixie testing; do
    [ -e "$BUILD/runtimes/$suite/ready" ] || step "containerd of Debian $suite"
    "$ROOT/tests/runtimes/unpack.sh" "$suite" "$BUILD/runtimes/$suite" || step "no containerd of Debian $suite"
  done
}

# Roots in which packages are installed: of this machine's suite, and of those that KEELSON_TEST_SUITES names. Without a mirror their
# tests say so and are skipped; with one, a root that cannot be made is an error.
packages_test_root() {
  local suite
  for suite in $(. /etc/os-release && echo "$VERSION_CODENAME") ${KEELSON_TEST_SUITES:-}; do
    (packages_root "$suite") && continue
    ! packages_mirror_answers "$suite" || die "no root of $suite to install packages in, and the mirror answers"
    step "no root of $suite to install packages in, and no mirror"
  done
}

# ./dev bench: all micro-benchmarks; ./dev bench NAME...: those; ./dev bench cluster: the running cluster;
# ./dev bench kubelet: its kubelet with many pods.
# ./dev bench services: its kube-proxy with many Services.
# ./dev bench api: its API server under load, beside what etcd alone takes on the same disk.
# ./dev bench scheduler [WORKLOAD...]: the whole scheduler on an API server in memory.
# ./dev bench controllers: a control plane of its own with nodes that cost nothing (tests/fake_kubelet).
# ./dev bench members: writes of one control plane, and of one of three.
# ./dev bench failover: how long clients of three control planes get no answer when one dies.
# ./dev bench exec: many exec streams at a time.
# ./dev bench storage: its claims, pods with volumes, and a kubelet's restart.
# ./dev bench cni: the CNI plugins beside the reference plugins (Debian: containernetworking-plugins).
run_bench() {
  if [ "${1:-}" = cni ]; then
    need_root
    build bridge host-local portmap
    python3 "$ROOT/tests/bench/cni_plugins_bench.py" "$BIN" "${@:2}"
    return
  fi
  if [ "${1:-}" = members ]; then
    need_root
    build kube-controlplane api_load
    python3 "$ROOT/tests/bench/members_bench.py" "$BUILD/bin" "$BUILD/bench-tools/api_load" "${@:2}"
    return
  fi
  if [ "${1:-}" = failover ]; then
    need_root
    build kube-controlplane steady_writes
    python3 "$ROOT/tests/bench/failover_bench.py" "$BUILD/bin" "$BUILD/bench-tools/steady_writes" --kubectl "$(kubectl_path)" "${@:2}"
    return
  fi
  if [ "${1:-}" = scheduler ]; then
    build scheduler_perf
    "$BUILD/bench-tools/scheduler_perf" "${@:2}"
    return
  fi
  if [ "${1:-}" = controllers ]; then
    need_root
    build kube-controlplane controllers_load
    PATH="$PATH:$(dirname "$(kubectl_path)")" "$BUILD/bench-tools/controllers_load" "${@:2}"
    return
  fi
  if [ "${1:-}" = extensions ]; then
    need_root
    build kube-controlplane extensions_load
    PATH="$PATH:$(dirname "$(kubectl_path)")" "$BUILD/bench-tools/extensions_load" "${@:2}"
    return
  fi
  if [ "${1:-}" = storage ]; then
    need_root
    node_use "${NODES[0]}"
    daemon_pid keelson-csi-controller >/dev/null || die "no cluster with storage runs in $KEELSON_DIR: run ./dev up"
    in_node python3 "$ROOT/tests/bench/storage_bench.py" "$KEELSON_DIR" "$ROOT/dev" "${@:2}"
    return
  fi
  build
  if [ "${1:-}" = cluster ] || [ "${1:-}" = kubelet ]; then
    need_root
    node_use "${NODES[0]}"
    daemon_pid kubelet >/dev/null || die "no cluster runs in $KEELSON_DIR: run ./dev up"
    in_node python3 "$ROOT/tests/bench/$1_bench.py" "$KEELSON_DIR" "$BUILD" "${@:2}"
    return
  fi
  if [ "${1:-}" = services ]; then
    need_root
    node_use "${NODES[0]}"
    daemon_pid kube-proxy >/dev/null || die "no cluster runs in $KEELSON_DIR: run ./dev up"
    in_node python3 "$ROOT/tests/bench/services_bench.py" "$KEELSON_DIR" "${@:2}"
    return
  fi
  if [ "${1:-}" = exec ]; then
    need_root
    node_use "${NODES[0]}"
    daemon_pid kubelet >/dev/null || die "no cluster runs in $KEELSON_DIR: run ./dev up"
    PATH="$(dirname "$(kubectl_path)"):$PATH" in_node python3 "$ROOT/tests/bench/exec_bench.py" "$KEELSON_DIR" "${@:2}"
    return
  fi
  if [ "${1:-}" = api ]; then
    need_root
    node_use "${NODES[0]}"
    local pid etcd
    pid=$(daemon_pid kube-controlplane) || die "no cluster runs in $KEELSON_DIR: run ./dev up"
    etcd=$(pgrep -P "$pid" etcd) || etcd=
    in_node "$BUILD/bench-tools/api_load" --kubeconfig "$(admin_kubeconfig)" --pid "$pid" ${etcd:+--pid "$etcd"} \
      --etcd-dir "$KEELSON_DIR" "${@:2}"
    return
  fi
  local bench found=
  for bench in "$BUILD"/bench/*; do
    [ $# -eq 0 ] || [[ " $* " == *" $(basename "$bench") "* ]] || continue
    found=1
    step "$(basename "$bench")"
    "$bench" --benchmark_counters_tabular=true
  done
  [ -n "$found" ] || die "no such benchmark"
}
