# The network of nodes that are namespaces: a bridge that the host has an address on, and a veth pair a node.
#
#   host  .254 -- bridge kn-ID --+-- kn<ID>n1 == eth0 .1   node1
#                                +-- kn<ID>n2 == eth0 .2   node2

NODES_BRIDGE=kn-$KEELSON_ID
NODES_TABLE=keelson-nodes-$KEELSON_ID

# Whether no route covers the range or a part of it (a default route does not count).
subnet_is_free() { [ -z "$(ip -4 route show root "$1"; ip -4 route show match "$1" | grep -v ^default)" ]; }

# Keeps the cluster's subnet, or chooses KEELSON_NODE_SUBNET or a free one.
choose_subnet() {
  [ -z "$CLUSTER_SUBNET" ] || return 0
  local wanted=${KEELSON_NODE_SUBNET:-} third
  if [ -n "$wanted" ]; then
    [[ $wanted == *.0/24 ]] || die "KEELSON_NODE_SUBNET must be a network A.B.C.0/24"
    subnet_is_free "$wanted" || die "$wanted is in use on this machine"
    CLUSTER_SUBNET=$wanted
    return
  fi
  for third in $(seq 77 99); do
    CLUSTER_SUBNET=192.168.$third.0/24
    ! subnet_is_free "$CLUSTER_SUBNET" || return 0
  done
  die "192.168.77.0/24 to 192.168.99.0/24 are in use: set KEELSON_NODE_SUBNET"
}

forward_packets() { echo 1 >/proc/sys/net/ipv4/ip_forward; }

network_make() {
  [ -n "$CLUSTER_NODES" ] || return 0
  if ! ip link show "$NODES_BRIDGE" >/dev/null 2>&1; then
    ip link add "$NODES_BRIDGE" type bridge
    ip addr add "$(cidr_address "$CLUSTER_SUBNET" 254)/24" dev "$NODES_BRIDGE"
  fi
  ip link set "$NODES_BRIDGE" up
  # Nodes reach the outside as far as the host does.
  [ -n "$(ip -4 route show default)" ] || return 0
  forward_packets
  nft -f - <<RULES
table ip $NODES_TABLE
delete table ip $NODES_TABLE
table ip $NODES_TABLE {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr $CLUSTER_SUBNET ip daddr != $CLUSTER_SUBNET oifname != "$NODES_BRIDGE" masquerade
  }
}
RULES
}

network_remove() {
  [ -n "$CLUSTER_NODES" ] || return 0
  ip link delete "$NODES_BRIDGE" 2>/dev/null || true
  nft delete table ip "$NODES_TABLE" 2>/dev/null || true
}

# The address is the same after every power-off, as a network card's is.
link_make() {
  local mac
  mac=0a:$(sed 's/../&:/g' <<<"$KEELSON_ID")$(printf %02x "$NODE_INDEX")
  ip link add "$NODE_LINK" type veth peer name eth0 netns "$NODE_NETNS" address "$mac"
  ip link set "$NODE_LINK" master "$NODES_BRIDGE" up
  ip -n "$NODE_NETNS" -batch - <<COMMANDS
link set lo up
addr add $NODE_IP/24 dev eth0
link set eth0 up
route add default via $(cidr_address "$CLUSTER_SUBNET" 254)
COMMANDS
}

# At once: the kernel takes a network namespace apart some time after its last user is gone, and on a busy machine much later.
# Until then a link of this name could not be made again.
link_remove() { ip link delete "$NODE_LINK" 2>/dev/null || true; }

link_cut() { ip link set "$NODE_LINK" down; }
link_heal() { ip link set "$NODE_LINK" up; }
link_is_cut() { [ -n "$NODE_LINK" ] && [ -z "$(ip link show dev "$NODE_LINK" up 2>/dev/null)" ]; }
