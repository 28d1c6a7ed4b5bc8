#include "lib/netlink/xfrm.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

constexpr char kAlgorithm[] = "rfc4106(gcm(aes))";
constexpr unsigned kIcvBits = 128;

uint16_t Family(const IpAddress& address) { return address.is_v4() ? AF_INET : AF_INET6; }

void Put(xfrm_address_t& out, const IpAddress& address) {
  std::memcpy(&out, address.bytes().data(), address.bytes().size());
}

IpAddress Get(const xfrm_address_t& in, uint16_t family) {
  return IpAddress::FromBytes(
      {reinterpret_cast<const char*>(&in), family == AF_INET ? size_t{4} : size_t{16}});
}

xfrm_lifetime_cfg Unlimited() {
  xfrm_lifetime_cfg out{};
  out.soft_byte_limit = out.hard_byte_limit = XFRM_INF;
  out.soft_packet_limit = out.hard_packet_limit = XFRM_INF;
  return out;
}

xfrm_selector Selector(const XfrmPolicy& policy) {
  xfrm_selector out{};
  out.family = Family(policy.source.address());
  Put(out.saddr, policy.source.Network());
  Put(out.daddr, policy.destination.Network());
  out.prefixlen_s = static_cast<uint8_t>(policy.source.length());
  out.prefixlen_d = static_cast<uint8_t>(policy.destination.length());
  return out;
}

std::string TemplateBytes(const XfrmPolicy::Tunnel& tunnel) {
  xfrm_user_tmpl out{};
  out.family = Family(tunnel.destination);
  Put(out.id.daddr, tunnel.destination);
  Put(out.saddr, tunnel.source);
  out.id.spi = htonl(tunnel.spi);
  out.id.proto = IPPROTO_ESP;
  out.reqid = tunnel.reqid;
  out.mode = XFRM_MODE_TUNNEL;
  out.aalgos = out.ealgos = out.calgos = ~0u;
  return {reinterpret_cast<const char*>(&out), sizeof out};
}

std::string Describe(std::string_view verb, const XfrmPolicy& policy) {
  return std::string(verb) + " IPsec policy " + policy.source.ToString() + " to " +
         policy.destination.ToString();
}

std::string Describe(std::string_view verb, const XfrmState& state) {
  return std::string(verb) + " IPsec state " + state.source.ToString() + " to " +
         state.destination.ToString();
}

Result<bool> FalseIfGone(const Result<>& deleted) {
  if (!deleted && (deleted.error().Is(Code::kNotFound) || deleted.error().errnum() == ESRCH)) return false;
  if (!deleted) return deleted.error();
  return true;
}

std::optional<XfrmPolicy> ParsePolicy(nlmsghdr* header) {
  auto* info = static_cast<xfrm_userpolicy_info*>(nlmsg_data(header));
  if (info->dir > XFRM_POLICY_FWD || (info->sel.family != AF_INET && info->sel.family != AF_INET6)) {
    return std::nullopt;
  }
  XfrmPolicy out;
  out.direction = static_cast<XfrmPolicy::Direction>(info->dir);
  out.source = IpPrefix(Get(info->sel.saddr, info->sel.family), info->sel.prefixlen_s);
  out.destination = IpPrefix(Get(info->sel.daddr, info->sel.family), info->sel.prefixlen_d);
  out.priority = info->priority;
  out.block = info->action == XFRM_POLICY_BLOCK;
  nlattr* templates = nlmsg_find_attr(header, sizeof *info, XFRMA_TMPL);
  if (templates && nla_len(templates) >= static_cast<int>(sizeof(xfrm_user_tmpl))) {
    auto* first = static_cast<xfrm_user_tmpl*>(nla_data(templates));
    out.tunnel = XfrmPolicy::Tunnel{Get(first->saddr, first->family), Get(first->id.daddr, first->family),
                                    ntohl(first->id.spi), first->reqid};
  }
  return out;
}

}  // namespace

Result<> AddState(Socket& socket, const XfrmState& state) {
  xfrm_usersa_info info{};
  Put(info.id.daddr, state.destination);
  Put(info.saddr, state.source);
  info.id.spi = htonl(state.spi);
  info.id.proto = IPPROTO_ESP;
  info.lft = Unlimited();
  info.reqid = state.reqid;
  info.family = Family(state.destination);
  info.mode = XFRM_MODE_TUNNEL;
  info.flags = XFRM_STATE_AF_UNSPEC;
  Request request(XFRM_MSG_NEWSA, NLM_F_CREATE | NLM_F_EXCL, info, Describe("add", state));
  xfrm_algo_aead algorithm{};
  std::memcpy(algorithm.alg_name, kAlgorithm, sizeof kAlgorithm);
  algorithm.alg_key_len = static_cast<unsigned>(state.key.size() * 8);
  algorithm.alg_icv_len = kIcvBits;
  request.PutBytes(XFRMA_ALG_AEAD,
                   std::string(reinterpret_cast<const char*>(&algorithm), sizeof algorithm) + state.key);
  Result<> added = request.Run(socket);
  if (added) return {};
  int errnum = added.error().errnum();
  if (errnum == EPROTONOSUPPORT || errnum == ENOSYS || errnum == ENOENT) {
    return Error(Code::kUnimplemented, added.error().message() + " (the kernel needs ESP and AES-GCM)",
                 errnum);
  }
  return added;
}

Result<bool> DeleteState(Socket& socket, const XfrmState& state) {
  xfrm_usersa_id id{};
  Put(id.daddr, state.destination);
  id.spi = htonl(state.spi);
  id.family = Family(state.destination);
  id.proto = IPPROTO_ESP;
  return FalseIfGone(Request(XFRM_MSG_DELSA, 0, id, Describe("delete", state)).Run(socket));
}

Result<std::vector<XfrmState>> ListStates(Socket& socket) {
  std::vector<XfrmState> out;
  Request request(XFRM_MSG_GETSA, NLM_F_DUMP, xfrm_usersa_id{}, "list IPsec states");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<xfrm_usersa_info*>(nlmsg_data(header));
    if (info->id.proto != IPPROTO_ESP || (info->family != AF_INET && info->family != AF_INET6)) return;
    out.push_back({Get(info->saddr, info->family), Get(info->id.daddr, info->family), ntohl(info->id.spi),
                   info->reqid, ""});
  }));
  return out;
}

Result<> ReplacePolicy(Socket& socket, const XfrmPolicy& policy) {
  xfrm_userpolicy_info info{};
  info.sel = Selector(policy);
  info.lft = Unlimited();
  info.priority = policy.priority;
  info.dir = static_cast<uint8_t>(policy.direction);
  info.action = policy.block ? XFRM_POLICY_BLOCK : XFRM_POLICY_ALLOW;
  Request request(XFRM_MSG_UPDPOLICY, NLM_F_CREATE | NLM_F_REPLACE, info, Describe("set", policy));
  if (policy.tunnel) request.PutBytes(XFRMA_TMPL, TemplateBytes(*policy.tunnel));
  return request.Run(socket);
}

Result<bool> DeletePolicy(Socket& socket, const XfrmPolicy& policy) {
  xfrm_userpolicy_id id{};
  id.sel = Selector(policy);
  id.dir = static_cast<uint8_t>(policy.direction);
  return FalseIfGone(Request(XFRM_MSG_DELPOLICY, 0, id, Describe("delete", policy)).Run(socket));
}

Result<std::vector<XfrmPolicy>> ListPolicies(Socket& socket) {
  std::vector<XfrmPolicy> out;
  Request request(XFRM_MSG_GETPOLICY, NLM_F_DUMP, xfrm_userpolicy_id{}, "list IPsec policies");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    if (auto policy = ParsePolicy(header)) out.push_back(std::move(*policy));
  }));
  return out;
}

Result<PolicyMonitor> PolicyMonitor::Open() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetlinkEvents events, linux::NetlinkEvents::Open(NETLINK_XFRM));
  KEELSON_RETURN_IF_ERROR(events.Listen(XFRMNLGRP_POLICY, true));
  return PolicyMonitor(std::move(events));
}

// Every message in this group is a change.
Result<size_t> PolicyMonitor::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  size_t changes = 0;
  KEELSON_RETURN_IF_ERROR(events_.Wait(stop, timeout, [&](const nlmsghdr*) { return ++changes > 0; }));
  return changes;
}

}  // namespace keelson::netlink
