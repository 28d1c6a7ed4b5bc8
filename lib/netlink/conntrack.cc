#include "lib/netlink/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

int Type(int message) { return (NFNL_SUBSYS_CTNETLINK << 8) | message; }

nfgenmsg Header(bool v4) {
  nfgenmsg header{};
  header.nfgen_family = v4 ? AF_INET : AF_INET6;
  return header;
}

nlattr* Find(nlattr* nest, int type) {
  return nest ? nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type) : nullptr;
}

std::optional<IpAddress> Address(nlattr* ip, int v4_type, int v6_type) {
  nlattr* found = Find(ip, v4_type);
  if (!found) found = Find(ip, v6_type);
  if (!found || (nla_len(found) != 4 && nla_len(found) != 16)) return std::nullopt;
  return IpAddress::FromBytes({static_cast<char*>(nla_data(found)), static_cast<size_t>(nla_len(found))});
}

uint16_t Port(nlattr* protocol, int type) {
  nlattr* found = Find(protocol, type);
  return found ? ntohs(nla_get_u16(found)) : uint16_t{0};
}

std::optional<Flow> Parse(nlmsghdr* header) {
  nlattr* original = nlmsg_find_attr(header, sizeof(nfgenmsg), CTA_TUPLE_ORIG);
  nlattr* reply = nlmsg_find_attr(header, sizeof(nfgenmsg), CTA_TUPLE_REPLY);
  nlattr* protocol = Find(original, CTA_TUPLE_PROTO);
  nlattr* number = Find(protocol, CTA_PROTO_NUM);
  auto source = Address(Find(original, CTA_TUPLE_IP), CTA_IP_V4_SRC, CTA_IP_V6_SRC);
  auto destination = Address(Find(original, CTA_TUPLE_IP), CTA_IP_V4_DST, CTA_IP_V6_DST);
  auto replier = Address(Find(reply, CTA_TUPLE_IP), CTA_IP_V4_SRC, CTA_IP_V6_SRC);
  if (!number || !source || !destination || !replier) return std::nullopt;
  Flow flow{
      .protocol = nla_get_u8(number), .source = *source, .destination = *destination, .replier = *replier};
  flow.source_port = Port(protocol, CTA_PROTO_SRC_PORT);
  flow.destination_port = Port(protocol, CTA_PROTO_DST_PORT);
  flow.replier_port = Port(Find(reply, CTA_TUPLE_PROTO), CTA_PROTO_SRC_PORT);
  flow.tuple.assign(static_cast<char*>(nla_data(original)), static_cast<size_t>(nla_len(original)));
  return flow;
}

template <typename Wanted>
Result<std::vector<Flow>> ListIf(Socket& socket, bool v4, const Wanted& wanted) {
  std::vector<Flow> out;
  Request request(Type(IPCTNL_MSG_CT_GET), NLM_F_DUMP, Header(v4), "list tracked connections");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    std::optional<Flow> flow = Parse(header);
    if (flow && wanted(*flow)) out.push_back(std::move(*flow));
  }));
  return out;
}

}  // namespace

Result<std::vector<Flow>> ListFlows(Socket& socket, bool v4, uint8_t protocol) {
  return ListIf(socket, v4, [&](const Flow& flow) { return flow.protocol == protocol; });
}

Result<std::vector<Flow>> ListFlowsOf(Socket& socket, const IpAddress& address) {
  return ListIf(socket, address.is_v4(), [&](const Flow& flow) {
    return flow.source == address || flow.destination == address || flow.replier == address;
  });
}

Result<std::vector<Flow>> ListFlowsOf(Socket& socket, const std::set<IpAddress>& addresses) {
  std::vector<Flow> out;
  for (bool v4 : {true, false}) {
    const bool any = std::any_of(addresses.begin(), addresses.end(),
                                 [v4](const IpAddress& address) { return address.is_v4() == v4; });
    if (!any) continue;
    KEELSON_ASSIGN_OR_RETURN(std::vector<Flow> flows, ListIf(socket, v4, [&](const Flow& flow) {
                               return addresses.contains(flow.source) ||
                                      addresses.contains(flow.destination) ||
                                      addresses.contains(flow.replier);
                             }));
    out.insert(out.end(), std::make_move_iterator(flows.begin()), std::make_move_iterator(flows.end()));
  }
  return out;
}

Result<bool> DeleteFlow(Socket& socket, const Flow& flow) {
  Request request(Type(IPCTNL_MSG_CT_DELETE), 0, Header(flow.source.is_v4()),
                  "delete tracked connection to " + flow.destination.ToString());
  request.PutBytes(CTA_TUPLE_ORIG | NLA_F_NESTED, flow.tuple);
  return request.RunIfThere(socket);
}

}  // namespace keelson::netlink
