#include "lib/netlink/tc/shaping.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#include <algorithm>
#include <cstring>

#include "lib/netlink/tc/internal.h"

namespace keelson::netlink {
namespace {

constexpr uint32_t kIngressHandle = 0xffff0000;
constexpr double kTickSeconds = 64e-9;  // of the packet scheduler's clock (PSCHED_SHIFT)

nlattr* Find(nlattr* nest, int type) {
  return nest ? nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type) : nullptr;
}

nlattr* Attribute(nlmsghdr* header, int type) { return nlmsg_find_attr(header, sizeof(tcmsg), type); }

bool IsKind(nlmsghdr* header, const char* kind) {
  nlattr* found = Attribute(header, TCA_KIND);
  return found && std::strcmp(nla_get_string(found), kind) == 0;
}

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

TokenBucket ParseBucket(nlmsghdr* header) {
  TokenBucket out;
  nlattr* options = Attribute(header, TCA_OPTIONS);
  nlattr* found = Find(options, TCA_TBF_PARMS);
  if (!found || nla_len(found) < static_cast<int>(sizeof(tc_tbf_qopt))) return out;
  tc_tbf_qopt parameters;
  std::memcpy(&parameters, nla_data(found), sizeof parameters);
  out.rate = parameters.rate.rate;
  if (nlattr* wide = Find(options, TCA_TBF_RATE64)) out.rate = nla_get_u64(wide);
  out.limit = parameters.limit;
  double burst = parameters.buffer * kTickSeconds * static_cast<double>(out.rate);
  out.burst = static_cast<uint32_t>(std::min(burst, 4294967295.0));
  return out;
}

// Adds a classifier action that redirects all packets to another device.
void PutRedirection(Request& request, int attribute, int ifb_index) {
  request.Nest(attribute, [&] {
    request.Nest(1, [&] {  // the first action
      request.PutString(TCA_ACT_KIND, "mirred");
      request.Nest(TCA_ACT_OPTIONS, [&] {
        tc_mirred mirred{};
        mirred.action = TC_ACT_STOLEN;
        mirred.eaction = TCA_EGRESS_REDIR;
        mirred.ifindex = static_cast<uint32_t>(ifb_index);
        request.PutBytes(TCA_MIRRED_PARMS, BytesOf(mirred));
      });
    });
  });
}

// A selector with one key, which every packet matches.
std::string MatchEverything() {
  tc_u32_sel selector{};
  selector.flags = TC_U32_TERMINAL;
  selector.nkeys = 1;
  std::string out(reinterpret_cast<const char*>(&selector), offsetof(tc_u32_sel, keys));
  return out + std::string(sizeof(tc_u32_key), '\0');
}

Result<> AddFilter(Socket& socket, int link_index, int ifb_index, bool u32) {
  tcmsg header = TrafficControl(link_index, kIngressHandle);
  header.tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_ALL));
  Request request(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, header, "redirect packets" + OnLink(link_index));
  request.PutString(TCA_KIND, u32 ? "u32" : "matchall");
  request.Nest(TCA_OPTIONS, [&] {
    if (u32) request.PutBytes(TCA_U32_SEL, MatchEverything());
    PutRedirection(request, u32 ? static_cast<int>(TCA_U32_ACT) : static_cast<int>(TCA_MATCHALL_ACT),
                   ifb_index);
  });
  return request.Run(socket);
}

Result<> DeleteIngress(Socket& socket, int link_index) {
  tcmsg header = TrafficControl(link_index, TC_H_INGRESS);
  Result<> deleted =
      Request(RTM_DELQDISC, 0, header, "delete ingress discipline" + OnLink(link_index)).Run(socket);
  // EINVAL: there is no root discipline to delete.
  if (!deleted && (deleted.error().Is(Code::kNotFound) || deleted.error().errnum() == EINVAL)) return {};
  return deleted;
}

}  // namespace

Result<> SetTokenBucket(Socket& socket, int link_index, const TokenBucket& bucket) {
  tcmsg header = TrafficControl(link_index, TC_H_ROOT);
  header.tcm_handle = TC_H_MAKE(1u << 16, 0);
  Request request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, header,
                  "set token bucket" + OnLink(link_index));
  tc_tbf_qopt parameters{};
  parameters.rate.linklayer = TC_LINKLAYER_ETHERNET;
  parameters.rate.rate = static_cast<uint32_t>(std::min<uint64_t>(bucket.rate, UINT32_MAX));
  parameters.limit = bucket.limit;
  request.PutString(TCA_KIND, "tbf");
  request.Nest(TCA_OPTIONS, [&] {
    request.PutBytes(TCA_TBF_PARMS, BytesOf(parameters));
    request.PutU32(TCA_TBF_BURST, bucket.burst);
    if (bucket.rate > UINT32_MAX) request.PutBytes(TCA_TBF_RATE64, BytesOf(bucket.rate));
  });
  return request.Run(socket);
}

Result<std::optional<TokenBucket>> GetTokenBucket(Socket& socket, int link_index) {
  std::optional<TokenBucket> found;
  Request request(RTM_GETQDISC, NLM_F_DUMP, TrafficControl(link_index, 0), "list queueing disciplines");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<tcmsg*>(nlmsg_data(header));
    if (info->tcm_ifindex != link_index || info->tcm_parent != TC_H_ROOT || !IsKind(header, "tbf")) return;
    found = ParseBucket(header);
  }));
  return found;
}

Result<> CreateIfb(Socket& socket, std::string_view name, int mtu, std::string_view alias) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{}, "create ifb " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  if (mtu > 0) request.PutU32(IFLA_MTU, static_cast<uint32_t>(mtu));
  request.Nest(IFLA_LINKINFO, [&] { request.PutString(IFLA_INFO_KIND, "ifb"); });
  KEELSON_RETURN_IF_ERROR(request.Run(socket));
  KEELSON_ASSIGN_OR_RETURN(Link made, GetLink(socket, name));
  Result<> completed = ChangeLink(socket, made.index, {.up = true, .alias = std::string(alias)});
  if (!completed) (void)DeleteLink(socket, made.index);
  return completed;
}

Result<> RedirectReceived(Socket& socket, int link_index, int ifb_index) {
  KEELSON_RETURN_IF_ERROR(DeleteIngress(socket, link_index));
  tcmsg header = TrafficControl(link_index, TC_H_INGRESS);
  header.tcm_handle = kIngressHandle;
  Request request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, header,
                  "add ingress discipline" + OnLink(link_index));
  request.PutString(TCA_KIND, "ingress");
  KEELSON_RETURN_IF_ERROR(request.Run(socket));
  // A kernel has one of these classifiers, or both.
  Result<> added = AddFilter(socket, link_index, ifb_index, true);
  if (added || !added.error().Is(Code::kNotFound)) return added;
  return AddFilter(socket, link_index, ifb_index, false);
}

Result<int> GetRedirection(Socket& socket, int link_index) {
  int target = 0;
  Request request(RTM_GETTFILTER, NLM_F_DUMP, TrafficControl(link_index, kIngressHandle),
                  "list filters" + OnLink(link_index));
  Result<> listed = request.Run(socket, [&](nlmsghdr* header) {
    nlattr* options = Attribute(header, TCA_OPTIONS);
    nlattr* actions = Find(
        options, IsKind(header, "u32") ? static_cast<int>(TCA_U32_ACT) : static_cast<int>(TCA_MATCHALL_ACT));
    nlattr* parameters = Find(Find(Find(actions, 1), TCA_ACT_OPTIONS), TCA_MIRRED_PARMS);
    if (!parameters || nla_len(parameters) < static_cast<int>(sizeof(tc_mirred))) return;
    tc_mirred mirred;
    std::memcpy(&mirred, nla_data(parameters), sizeof mirred);
    target = static_cast<int>(mirred.ifindex);
  });
  if (!listed && listed.error().errnum() != EINVAL) return listed.error();  // EINVAL: no ingress discipline
  return target;
}

}  // namespace keelson::netlink
