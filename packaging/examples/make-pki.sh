#!/bin/sh
# Makes certificates, keys and kubeconfigs of a cluster, in kubeadm's layout of /etc/kubernetes. What exists is kept. Needs openssl.
#
#   make-pki.sh cluster ADDRESS [SERVICE-ADDRESS]   on the machine of the control plane, which others reach at ADDRESS; SERVICE-ADDRESS is
#                                                   the first one of --service-cluster-ip-range (10.96.0.1)
#   make-pki.sh node NAME DIRECTORY                 there too: DIRECTORY gets what belongs into /etc/kubernetes of the node NAME
#   make-pki.sh csi-controller FILE                 there too, also where nodectl or kubeadm has made the cluster: FILE becomes
#                                                   /etc/kubernetes/csi-controller.conf of each node
set -eu
umask 077
base=${KUBERNETES_DIR:-/etc/kubernetes} days=${CERTIFICATE_DAYS:-365}
pki=$base/pki

key() { [ -f "$1" ] || openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

# certificate FILES SUBJECT [NAMES]: FILES.crt and FILES.key, of a client; with subject alternative names of a server too.
certificate() {
  key "$1.key"
  [ ! -f "$1.crt" ] || return 0
  usage=clientAuth
  [ -z "${3:-}" ] || usage=serverAuth,clientAuth
  {
    echo "basicConstraints=critical,CA:FALSE"
    echo "keyUsage=critical,digitalSignature"
    echo "extendedKeyUsage=$usage"
    [ -z "${3:-}" ] || echo "subjectAltName=$3"
  } >"$1.ext"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -set_serial "0x$(openssl rand -hex 16)" -days "$days" \
    -extfile "$1.ext" -out "$1.crt" 2>/dev/null
  rm -f "$1.ext" "$1.csr"
}

server() { cat "$pki/server" 2>/dev/null || sed -n '/^ *server: /{s///p;q}' "$base/admin.conf"; }

# kubeconfig FILE SUBJECT: with a client certificate inside.
kubeconfig() {
  [ ! -f "$1" ] || return 0
  work=$(mktemp -d)
  certificate "$work/client" "$2"
  cat >"$1.new" <<CONFIG
apiVersion: v1
kind: Config
clusters:
- name: kubernetes
  cluster:
    server: $(server)
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: user
  user:
    client-certificate-data: $(base64 -w0 "$work/client.crt")
    client-key-data: $(base64 -w0 "$work/client.key")
contexts:
- name: user@kubernetes
  context: {cluster: kubernetes, user: user}
current-context: user@kubernetes
CONFIG
  mv "$1.new" "$1"
  rm -rf "$work"
}

make_cluster() {
  address=$1 service=${2:-10.96.0.1}
  mkdir -p "$pki"
  echo "https://$address:6443" >"$pki/server"
  key "$pki/ca.key"
  [ -f "$pki/ca.crt" ] || openssl req -x509 -new -key "$pki/ca.key" -days 3650 -subj /CN=kubernetes -out "$pki/ca.crt" \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
  certificate "$pki/apiserver" /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,DNS:$(uname -n),IP:127.0.0.1,IP:$address,IP:$service"
  certificate "$pki/apiserver-kubelet-client" /O=system:masters/CN=kube-apiserver-kubelet-client
  key "$pki/sa.key"
  [ -f "$pki/sa.pub" ] || openssl ec -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
  kubeconfig "$base/admin.conf" /O=system:masters/CN=kubernetes-admin
  # What the unit waits for: `nodectl init` writes flags into it.
  [ -f "$base/kube-controlplane.env" ] || (umask 022 && : >"$base/kube-controlplane.env")
  # The control plane runs as a user of its own, which has to read the keys.
  if getent group kube-controlplane >/dev/null; then
    chgrp -R kube-controlplane "$pki"
    chmod 750 "$pki"
    chmod 640 "$pki"/*
  fi
}

make_node() {
  name=$1 directory=$2
  mkdir -p "$directory/pki"
  cp "$pki/ca.crt" "$directory/pki/ca.crt.new"
  chmod 644 "$directory/pki/ca.crt.new"
  mv "$directory/pki/ca.crt.new" "$directory/pki/ca.crt"
  kubeconfig "$directory/kubelet.conf" "/O=system:nodes/CN=system:node:$name"
  kubeconfig "$directory/kube-proxy.conf" /CN=system:kube-proxy
  kubeconfig "$directory/kube-cni.conf" "/O=keelson:kube-cni/CN=keelson:kube-cni:$name"
}

case "${1:-} $#" in
  "cluster 2" | "cluster 3") make_cluster "$2" "${3:-}" ;;
  "node 3") make_node "$2" "$3" ;;
  "csi-controller 2") kubeconfig "$2" /O=keelson:csi-controller/CN=keelson:csi-controller ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
