#!/bin/bash
# The life of a control plane of three machines, in namespaces of its own (run.sh).
# usage: three.sh WORK LOWER REPOSITORY VERSION PREPARED
source "$(dirname "$0")/cluster.sh"

machines_ready one two three

step "packages from a local repository"
for name in one two three; do
  machine_run $name /provision/packages.sh /packages/first keelson >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on $name"; }
  machine_run $name /provision/address.sh "${ADDRESS[$name]}"
done

step "nodectl init, and two more join as control planes"
begin=$(now)
machine_run one nodectl init --apiserver-advertise-address $control --control-plane-endpoint $control:6443 --token $token --node-name one \
  --upload-certs >"$work/last" 2>&1 || { cat "$work/last"; fail "init with --upload-certs"; }
key=$(sed -n '/Using certificate key/{n;p}' "$work/last")
hash=$(ca_hash)
for name in two three; do
  machine_run $name nodectl join $control:6443 --token $token --discovery-token-ca-cert-hash "sha256:$hash" --node-name $name --control-plane \
    --certificate-key "$key" --apiserver-advertise-address "${ADDRESS[$name]}" >"$work/last" 2>&1 || { cat "$work/last"; fail "join of $name"; }
done
took "control plane of three" "$begin"
within 60 "etcd is not healthy" machine_run three nodectl etcd status
within 60 "nodes are not ready" kube wait --for=condition=Ready nodes --all --timeout=1s
[ "$(kube get nodes -l node-role.kubernetes.io/control-plane -o name | wc -l)" = 3 ] || fail "not three control planes"

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
