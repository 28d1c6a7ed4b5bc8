#!/bin/bash
# The life of a cluster of two machines, in namespaces of its own (run.sh).
# usage: life.sh WORK LOWER REPOSITORY VERSION
source "$(dirname "$0")/cluster.sh"

machines_ready one two

step "packages from a local repository"
machine_run one /provision/packages.sh /packages/first keelson >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on one"; }
machine_run two /provision/packages.sh /packages/first keelson-node >"$work/last" 2>&1 || { cat "$work/last"; fail "packages on two"; }
for name in one two; do load_images $name; done

step "nodectl init and join"
machine_run one /provision/address.sh $control
machine_run two /provision/address.sh $node
begin=$(now)
machine_run one /provision/control-plane.sh $control $token >"$work/last" 2>&1 || { cat "$work/last"; fail "init"; }
took init "$begin"
hash=$(ca_hash)
begin=$(now)
machine_run two /provision/node.sh $control $token "sha256:$hash" >"$work/last" 2>&1 || { cat "$work/last"; fail "join"; }
took join "$begin"
kube wait --for=condition=Ready nodes --all --timeout=60s || fail "nodes are not ready"
took "join to Ready" "$begin"
[ "$(kube get nodes -o name | wc -l)" = 2 ] || fail "not two nodes"

step "a second time nothing happens"
machine_run one /provision/control-plane.sh $control $token | grep -q already || fail "init again"
machine_run two /provision/node.sh $control $token "sha256:$hash" | grep -q already || fail "join again"

step "pods, a Service and a volume"
kube apply -f - <"$repository/tests/machines/web.yaml" || fail "web.yaml"
kube rollout status deployment/web --timeout=60s || fail "the pods do not start"
service=$(kube get service web -o 'jsonpath={.spec.clusterIP}')
for name in one two; do
  within 30 "$name does not reach the Service" machine_run $name curl -fsS -m 2 "http://$service/"
done
grep -qx kept "$work/last" || fail "the page is: $(cat "$work/last")"

step "an upgrade keeps pods running"
before=$(pods_on_two)
[ -n "$before" ] || fail "no pod on two"
begin=$(now)
machine_run two /provision/packages.sh /packages/next keelson-node >"$work/last" 2>&1 || { cat "$work/last"; fail "the upgrade"; }
took upgrade "$begin"
[ "$(machine_run two dpkg-query -W -f '${Version}' keelson-kubelet)" = "$version.1" ] || fail "two has not got the next version"
within 60 "two is not ready after its upgrade" kube wait --for=condition=Ready node/two --timeout=1s
within 60 "the pods are not ready after the upgrade" ready_pods
[ "$(pods_on_two)" = "$before" ] || fail "containers were restarted: $before, then $(pods_on_two)"
machine_run one curl -fsS -m 2 "http://$service/" >/dev/null || fail "the Service does not answer after the upgrade"

step "a reboot"
machine_off two
begin=$(now)
machine_boot two $node
within 120 "the pod on two was not started again" restarted
within 120 "the pods are not ready after the reboot" ready_pods
took "reboot to ready pods" "$begin"
within 30 "two does not reach the Service after its reboot" machine_run two curl -fsS -m 2 "http://$service/"

step "reset"
kube delete -f - <"$repository/tests/machines/web.yaml" --timeout=60s || fail "web.yaml cannot be deleted"
machine_run two nodectl reset --force >"$work/last" 2>&1 || { cat "$work/last"; fail "reset of two"; }
kube delete node two || fail "node two cannot be deleted"
machine_run one nodectl reset --force >"$work/last" 2>&1 || { cat "$work/last"; fail "reset of one"; }
nothing_left one two
echo "--- passed"
