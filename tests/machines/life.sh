#!/bin/bash
# The life of a cluster of two machines, in namespaces of its own (run.sh).
# usage: life.sh WORK LOWER REPOSITORY VERSION PREPARED
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

step "an upgrade and a downgrade keep pods running and connections open"
before=$(pods_on_two)
[ -n "$before" ] || fail "no pod on two"
for name in one two; do hold $name "$service" 7000; done
change() {  # NAME VERSION DIRECTORY PACKAGE...: other packages on that machine
  local name=$1 to=$2 directory=$3
  shift 3
  machine_run $name /provision/packages.sh /packages/$directory "$@" >"$work/last" 2>&1 || { cat "$work/last"; fail "version $to on $name"; }
  [ "$(machine_run $name dpkg-query -W -f '${Version}' keelson-kubelet)" = "$to" ] || fail "$name has not got version $to"
  within 60 "$name is not ready with version $to" kube wait --for=condition=Ready node/$name --timeout=1s
  within 60 "the pods are not ready with version $to on $name" ready_pods
  [ "$(pods_on_two)" = "$before" ] || fail "containers were restarted: $before, then $(pods_on_two)"
  held "with version $to on $name"
}
begin=$(now)
change two "$version.1" next keelson-node
took "upgrade until Ready" "$begin"
change one "$version.1" next keelson
# apt takes an older version by its name alone.
change two "$version" first $(for part in node kubelet proxy cni nodectl; do echo "keelson-$part=$version"; done)
machine_run one curl -fsS -m 2 "http://$service/" >/dev/null || fail "the Service does not answer after the upgrade"
release

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
