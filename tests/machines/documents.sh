#!/bin/bash
# The life of a cluster of two machines as the documents tell it: every block that they mark `runnable` is run, in their order.
# usage: documents.sh WORK LOWER REPOSITORY VERSION PREPARED
source "$(dirname "$0")/cluster.sh"

machines_ready one two

# Runs the blocks of a document between two headings: document FILE [FROM [UNTIL]]
document() {
  local file=$1 number on place path name token begin
  step "$*"
  rm -rf "$work/blocks"
  mkdir "$work/blocks"
  python3 "$repository/tests/docs/documents.py" blocks "$work/blocks" "$repository/docs/$@" >"$work/index" || fail "$file"
  while read -r -u 4 number on place path; do
    if grep -q abcdef "$work/blocks/$number"; then
      # What a reader has got from `nodectl init`.
      token=$(machine_run one nodectl token create --kubeconfig /etc/kubernetes/admin.conf) || fail "no token"
      sed -i "s/abcdef\.0123456789abcdef/$token/; s/sha256:\.\.\./sha256:$(ca_hash)/" "$work/blocks/$number"
    fi
    for name in ${on//,/ }; do
      if [ "$path" != - ]; then
        mkdir -p "$(dirname "$(machine_root $name)$path")"
        cp "$work/blocks/$number" "$(machine_root $name)$path"
        continue
      fi
      sed 's/^/    /' "$work/blocks/$number"
      cp "$work/blocks/$number" "$(machine_root $name)/block.sh"
      begin=$(now)
      machine_run $name env KUBECONFIG=/etc/kubernetes/admin.conf bash -euxc "cd /packages/$place; . /block.sh" >"$work/last" 2>&1 ||
        { cat "$work/last"; fail "$file: block $number on $name"; }
      took "    on $name" "$begin"
    done
  done 4<"$work/index"
}
nodes_ready() { [ "$(kube get nodes -o name | wc -l)" = 2 ] && kube wait --for=condition=Ready nodes --all --timeout=1s; }

step "the documents' commands"
document install.md Packages Uninstalling
within 90 "nodes are not ready" nodes_ready
for name in one two; do load_images $name; done
kube apply -f - <"$repository/tests/machines/web.yaml" || fail "web.yaml"
kube taint node one node-role.kubernetes.io/control-plane- || fail "the taint stays"
within 90 "the pods do not start" ready_pods

document upgrade.md
within 90 "nodes are not ready after the upgrade" nodes_ready
within 90 "the pods are not ready after the upgrade" ready_pods
[ "$(machine_run two dpkg-query -W -f '${Version}' keelson-kubelet)" = "$version.1" ] || fail "two has not got the next version"
[ "$(machine_run one dpkg-query -W -f '${Version}' keelson-kubelet)" = "$version" ] || fail "one has not returned to its version"
[ "$(machine_run one sh -c 'ls /etc/kubernetes/tmp/*/etcd.db | wc -l')" -ge 2 ] || fail "no backups"

document backup-and-restore.md
within 90 "nodes are not ready with what was restored" nodes_ready
within 90 "the pods are not ready with what was restored" ready_pods

document certificates.md
within 60 "nodes are not ready with new certificates" nodes_ready
document join-a-stock-cluster.md

step "packages go while pods run, and come again"
# The drain has moved its pod away.
kube scale deployment/web --replicas=0 || fail "pods stay"
kube wait --for=delete pods -l app=web --timeout=90s || fail "pods stay"
kube scale deployment/web --replicas=2 || fail "no pods"
within 90 "the pods do not start again" ready_pods
before=$(pods_on_two)
[ -n "$before" ] || fail "no pod on two"
machine_run two apt-get remove -y keelson-kubelet keelson-proxy keelson-cni >"$work/last" 2>&1 || { cat "$work/last"; fail "removal on two"; }
machine_run two sh -c 'pgrep -f "httpd -f -p 8080"' >/dev/null || fail "the pod has ended with the packages"
machine_run two sh -c 'cd /packages/next && apt-get install -y ./keelson-node_*.deb ./keelson-kubelet_*.deb ./keelson-proxy_*.deb ./keelson-cni_*.deb' >"$work/last" 2>&1 ||
  { cat "$work/last"; fail "installation on two"; }
within 90 "two is not ready with its packages back" nodes_ready
[ "$(pods_on_two)" = "$before" ] || fail "containers were restarted: $before, then $(pods_on_two)"

kube delete -f - <"$repository/tests/machines/web.yaml" --timeout=60s || fail "web.yaml cannot be deleted"
document install.md Uninstalling rpm
nothing_left one two
for name in one two; do
  left=$(machine_run $name sh -c 'dpkg-query -W "keelson*" 2>/dev/null; ls -d /etc/default/kube* /usr/bin/kube-* /usr/bin/kubelet /usr/bin/nodectl /etc/kubernetes/tmp/* 2>/dev/null') || true
  [ -z "$left" ] || fail "uninstalling leaves on $name: $left"
done
echo "--- passed"
