#!/bin/bash
# The life of a control plane of three machines, in namespaces of its own (run.sh): on one and three it is a static pod, on two a unit. What
# joins them is in the document that init prints.
# usage: three.sh WORK LOWER REPOSITORY VERSION PREPARED
source "$(dirname "$0")/cluster.sh"

machines_ready one two three

step "packages from a local repository"
for name in one two three; do
  machine_run $name /provision/packages.sh /packages/first keelson >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on $name"; }
  machine_run $name /provision/address.sh "${ADDRESS[$name]}"
done
# The static pods' image, which is the sandboxes' too.
for name in one three; do load_images $name; done

step "nodectl init, and two more join as control planes"
begin=$(now)
machine_run one nodectl -o json init --apiserver-advertise-address $control --control-plane-endpoint $control:6443 --token $token --node-name one \
  --upload-certs --control-plane-mode=static-pods >"$work/init.json" 2>"$work/last" || { cat "$work/last"; fail "init with --upload-certs"; }
took "init with a static pod" "$begin"
# told FIELD...: of init's document, from the outside to the inside.
told() {
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for field in sys.argv[2:]: value = value[int(field) if isinstance(value, list) else field]
print(value)' "$work/init.json" "$@"
}
joining=$(told controlPlaneJoinCommand) || fail "the document of init: $(cat "$work/init.json")"
[ "$(told caCertHashes 0)" = "sha256:$(ca_hash)" ] || fail "the document of init has another hash"
[ "$(told phases -1 name)" = show-join-command ] || fail "the document of init has the phases $(told phases)"
declare -A MODE=([two]=systemd [three]=static-pods)
for name in two three; do
  machine_run $name $joining --node-name $name --apiserver-advertise-address "${ADDRESS[$name]}" --control-plane-mode=${MODE[$name]} \
    --progress=json >"$work/last" 2>&1 || { cat "$work/last"; fail "join of $name"; }
  python3 -c 'import json, sys; events = [json.loads(line) for line in open(sys.argv[1])]
assert [e for e in events if e.get("phase") == "etcd-join" and e["event"] == "end" and "error" not in e], events' "$work/last" || fail "progress of $name"
done
took "control plane of three" "$begin"
within 60 "etcd is not healthy" machine_run three nodectl etcd status
within 60 "nodes are not ready" kube wait --for=condition=Ready nodes --all --timeout=1s
[ "$(kube get nodes -l node-role.kubernetes.io/control-plane -o name | wc -l)" = 3 ] || fail "not three control planes"

step "static pods"
# pod_ready NAME...: of these machines.
pod_ready() { local name; for name in "$@"; do kube -n kube-system wait --for=condition=Ready "pod/kube-controlplane-$name" --timeout=1s || return 1; done; }
within 60 "the static pods are not ready" pod_ready one three
for name in one three; do
  [ "$(machine_run $name systemctl is-active kube-controlplane)" != active ] || fail "$name runs the unit too"
  machine_run $name systemctl start kube-controlplane || fail "the unit of $name fails beside the static pod"
  [ "$(machine_run $name systemctl is-active kube-controlplane)" != active ] || fail "the unit of $name starts beside the static pod"
  pid=$(machine_run $name pgrep -x kube-controlpla) || fail "no kube-controlplane on $name"
  [ "$(machine_run $name stat -c %U /proc/$pid)" = kube-controlplane ] || fail "it runs as $(machine_run $name stat -c %U /proc/$pid) on $name"
  grep -q '^CapEff:[[:space:]]*0*$' <(machine_run $name cat /proc/$pid/status) || fail "it has capabilities on $name"
done
[ "$(machine_run two systemctl is-active kube-controlplane)" = active ] || fail "two does not run the unit"

step "what stock kubeadm looks for when it joins as a control plane"
# Members of etcd (one is enough: getEtcdEndpoints), the shared certificates, and the configuration, all with what a token may read.
endpoints=$(kube -n kube-system get pods -l component=etcd,tier=control-plane \
  -o 'jsonpath={range .items[*]}{.metadata.annotations.kubeadm\.kubernetes\.io/etcd\.advertise-client-urls}{"\n"}{end}' | sort | paste -sd,)
case $(machine_run one etcd --version) in
  *'Version: 3.4.'*) wanted='' ;;  # which kubeadm's own etcd would end
  *) wanted=https://$control:2379,https://$third:2379 ;;
esac
[ "$endpoints" = "$wanted" ] || fail "kubeadm finds the members $endpoints"
with_token() { machine_run two kubectl --kubeconfig /dev/null --server "https://$control:6443" --certificate-authority /etc/kubernetes/pki/ca.crt --token $token "$@"; }
keys=$(with_token -n kube-system get secret kubeadm-certs -o json | python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)["data"]))')
[ "$keys" = "ca.crt ca.key etcd-ca.crt etcd-ca.key front-proxy-ca.crt front-proxy-ca.key sa.key sa.pub" ] || fail "kubeadm-certs has $keys"
for map in kubeadm-config kubelet-config kube-proxy; do
  with_token -n kube-system get configmap $map >/dev/null || fail "a token cannot read $map"
done

step "the daily snapshot"
machine_run one systemctl start keelson-etcd-snapshot.service || fail "the snapshot"
machine_run one sh -c 'ls /var/lib/keelson/etcd-snapshots/keelson-etcd-*.db' >/dev/null || fail "there is no snapshot"

step "an upgrade, one machine after the other"
for name in one two three; do
  machine_run $name /provision/packages.sh /packages/next keelson >"$work/last" 2>&1 || { cat "$work/last"; fail "packages of the next version on $name"; }
done
machine_run one nodectl upgrade apply --yes >"$work/last" 2>&1 || { cat "$work/last"; fail "upgrade apply on one"; }
for name in two three; do
  machine_run $name nodectl upgrade node >"$work/last" 2>&1 || { cat "$work/last"; fail "upgrade node on $name"; }
  machine_run $name grep -q -- --etcd-initial-cluster= /etc/kubernetes/kube-controlplane.env || fail "$name has lost its members of etcd"
done
within 60 "etcd is not healthy after the upgrade" machine_run three nodectl etcd status
within 60 "the static pods are not ready after the upgrade" pod_ready one three

step "one of them is off"
machine_off three
for address in $control $node; do
  within 60 "the API at $address does not answer" kube --server "https://$address:6443" annotate --overwrite namespace default test=$address
done
! machine_run two nodectl reset --force >"$work/last" 2>&1 || fail "reset has taken the quorum"
grep -q 'lose its quorum' "$work/last" || { cat "$work/last"; fail "reset of two says nothing of the quorum"; }
machine_boot three $third
within 120 "three does not come back" machine_run three nodectl etcd status

step "they leave one by one"
for name in three two one; do
  machine_run $name nodectl reset --force >"$work/last" 2>&1 || { cat "$work/last"; fail "reset of $name"; }
  nothing_left $name
  [ $name != one ] || break
  machine_run one nodectl etcd members >"$work/last" 2>&1 || { cat "$work/last"; fail "etcd after the reset of $name"; }
  ! grep -q " $name " "$work/last" || fail "$name is still a member"
done
echo "--- passed"
