# The cluster's certificates and keys: one CA, a certificate a component, a key for ServiceAccount tokens, and a CA of
# its own for the API server as a client of extension API servers.
# Made once; what exists is kept.

pki_key() { [ -f "$1" ] || (umask 077 && openssl ecparam -name prime256v1 -genkey -noout -out "$1"); }

# pki_ca NAME COMMON_NAME
pki_ca() {
  pki_key "$PKI/$1.key"
  [ -f "$PKI/$1.crt" ] || openssl req -x509 -new -key "$PKI/$1.key" -days 3650 -subj "/CN=$2" -out "$PKI/$1.crt" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
}

# pki_cert NAME SUBJECT [SAN [CA]]: a client certificate; with subject alternative names a serving one too.
pki_cert() {
  local name=$1 subject=$2 san=${3:-} ca=${4:-ca} usage=clientAuth
  [ -z "$san" ] || usage=serverAuth,clientAuth
  pki_key "$PKI/$name.key"
  [ ! -f "$PKI/$name.crt" ] || return 0
  {
    echo "basicConstraints=critical,CA:FALSE"
    echo "keyUsage=critical,digitalSignature"
    echo "extendedKeyUsage=$usage"
    [ -z "$san" ] || echo "subjectAltName=$san"
  } >"$PKI/$name.ext"
  openssl req -new -key "$PKI/$name.key" -subj "$subject" -out "$PKI/$name.csr"
  openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/$ca.crt" -CAkey "$PKI/$ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days 3650 -extfile "$PKI/$name.ext" -out "$PKI/$name.crt" 2>/dev/null
  rm -f "$PKI/$name.ext" "$PKI/$name.csr"
}

# pki_kubeconfig NAME FILE [HOST]: a kubeconfig with the credentials of that name inside, for clients on the nodes, or of HOST.
pki_kubeconfig() {
  local name=$1 file=$2 host=${3:-}
  [ -n "$host" ] || host=$(api_host)
  (umask 077 && cat >"$file.new") <<CONFIG
apiVersion: v1
kind: Config
clusters:
- name: keelson
  cluster:
    server: https://$host:$KEELSON_API_PORT
    certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")
users:
- name: $name
  user:
    client-certificate-data: $(base64 -w0 "$PKI/$name.crt")
    client-key-data: $(base64 -w0 "$PKI/$name.key")
contexts:
- name: keelson
  context:
    cluster: keelson
    user: $name
current-context: keelson
CONFIG
  mv "$file.new" "$file"
}

pki_make() {
  local ips='' service_ip name
  for name in "${CONTROL_PLANES[@]}"; do ips+=IP:$(node_ip "$name"),; done
  ! several_control_planes || ips+=DNS:$API_NAME,
  service_ip=$(cidr_address "$KEELSON_SERVICE_CIDR" 1)
  mkdir -p "$PKI" "$CONF"
  chmod 700 "$PKI"
  pki_ca ca keelson-dev-ca
  pki_ca front-proxy-ca keelson-dev-front-proxy-ca
  pki_cert apiserver /CN=kube-apiserver "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1,${ips}IP:$service_ip"
  pki_cert apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  pki_cert front-proxy-client /CN=front-proxy-client "" front-proxy-ca
  pki_cert admin /O=system:masters/CN=kubernetes-admin
  pki_cert kube-proxy /CN=system:kube-proxy
  pki_cert kube-cni /O=keelson:kube-cni/CN=keelson:kube-cni
  pki_key "$PKI/sa.key"
  [ -f "$PKI/sa.pub" ] || openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
  for name in kube-proxy kube-cni; do pki_kubeconfig "$name" "$CONF/$name.kubeconfig"; done
  pki_kubeconfig admin "$CONF/admin.kubeconfig" "$(node_ip "${CONTROL_PLANES[0]}")"
  ! several_control_planes || pki_etcd
  storage_pki
}

# A CA of etcd's own, a certificate for API servers, and two for each member: of its clients' port and of its peers'.
pki_etcd() {
  local name ip role
  pki_ca etcd-ca keelson-dev-etcd-ca
  pki_cert etcd-client /CN=kube-apiserver-etcd-client "" etcd-ca
  for name in "${CONTROL_PLANES[@]}"; do
    ip=$(node_ip "$name")
    mkdir -p "$PKI/etcd-$name"
    ln -sf ../etcd-ca.crt "$PKI/etcd-$name/ca.crt"
    for role in server peer; do pki_cert "etcd-$name/$role" "/CN=$name" "DNS:$name,DNS:localhost,IP:127.0.0.1,IP:$ip" etcd-ca; done
  done
}

# The kubelet's two certificates and its kubeconfig, for the node in use (node_use).
pki_node() {
  mkdir -p "$NODE_CONF"
  pki_cert "$NODE" "/O=system:nodes/CN=system:node:$NODE"
  pki_cert "$NODE-serving" "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:$NODE_IP,IP:127.0.0.1"
  pki_kubeconfig "$NODE" "$NODE_CONF/kubelet.kubeconfig"
}
