#include "lib/netlink/ipvs.h"

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/ip_vs.h>
#include <netinet/in.h>

#include <cerrno>

#include "lib/netlink/generic_internal.h"
#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

constexpr uint32_t kSchedulerFlags = kSchedulerFlag1 | kSchedulerFlag2 | kSchedulerFlag3;
static_assert(kSchedulerFlag1 == IP_VS_SVC_F_SCHED1 && kSchedulerFlag2 == IP_VS_SVC_F_SCHED2 &&
              kSchedulerFlag3 == IP_VS_SVC_F_SCHED3);

genlmsghdr Header(uint8_t command) {
  genlmsghdr header{};
  header.cmd = command;
  header.version = IPVS_GENL_VERSION;
  return header;
}

template <typename T>
void PutValue(Request& request, int type, T value) {
  request.PutBytes(type, {reinterpret_cast<const char*>(&value), sizeof value});
}

void PutAddress(Request& request, const ServerAddress& a) {
  PutValue<uint16_t>(request, IPVS_SVC_ATTR_AF, a.ip.is_v4() ? AF_INET : AF_INET6);
  PutValue<uint16_t>(request, IPVS_SVC_ATTR_PROTOCOL, a.protocol);
  request.PutBytes(IPVS_SVC_ATTR_ADDR, a.ip.bytes());
  PutValue<uint16_t>(request, IPVS_SVC_ATTR_PORT, htons(a.port));
}

void PutServer(Request& request, const VirtualServer& server) {
  request.Nest(IPVS_CMD_ATTR_SERVICE | NLA_F_NESTED, [&] {
    PutAddress(request, server.address);
    request.PutString(IPVS_SVC_ATTR_SCHED_NAME, server.scheduler);
    const bool sticky = server.affinity.count() > 0;
    ip_vs_flags flags{};
    flags.flags = (server.scheduler_flags & kSchedulerFlags) | (sticky ? IP_VS_SVC_F_PERSISTENT : 0);
    flags.mask = kSchedulerFlags | IP_VS_SVC_F_PERSISTENT;
    PutValue(request, IPVS_SVC_ATTR_FLAGS, flags);
    request.PutU32(IPVS_SVC_ATTR_TIMEOUT, static_cast<uint32_t>(server.affinity.count()));
    // Affinity for each client address by itself.
    request.PutU32(IPVS_SVC_ATTR_NETMASK, server.address.ip.is_v4() ? 0xffffffffu : 128u);
  });
}

void PutDestination(Request& request, const ServerAddress& server, const Destination& d) {
  request.Nest(IPVS_CMD_ATTR_SERVICE | NLA_F_NESTED, [&] { PutAddress(request, server); });
  request.Nest(IPVS_CMD_ATTR_DEST | NLA_F_NESTED, [&] {
    PutValue<uint16_t>(request, IPVS_DEST_ATTR_ADDR_FAMILY, d.ip.is_v4() ? AF_INET : AF_INET6);
    request.PutBytes(IPVS_DEST_ATTR_ADDR, d.ip.bytes());
    PutValue<uint16_t>(request, IPVS_DEST_ATTR_PORT, htons(d.port));
    request.PutU32(IPVS_DEST_ATTR_FWD_METHOD, IP_VS_CONN_F_MASQ);
    request.PutU32(IPVS_DEST_ATTR_WEIGHT, d.weight);
    request.PutU32(IPVS_DEST_ATTR_U_THRESH, 0);
    request.PutU32(IPVS_DEST_ATTR_L_THRESH, 0);
  });
}

nlattr* Find(nlattr* nest, int type) {
  return nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type);
}
uint32_t U32(nlattr* nest, int type) {
  nlattr* found = Find(nest, type);
  return found ? nla_get_u32(found) : 0;
}
uint16_t U16(nlattr* nest, int type) {
  nlattr* found = Find(nest, type);
  return found ? nla_get_u16(found) : uint16_t{0};
}

// The kernel writes a field of sixteen bytes for either family.
IpAddress Address(nlattr* nest, int type, bool v4) {
  nlattr* found = Find(nest, type);
  const size_t size = v4 ? 4 : 16;
  if (!found || static_cast<size_t>(nla_len(found)) < size) return {};
  return IpAddress::FromBytes({static_cast<char*>(nla_data(found)), size});
}

TrafficStats Stats(nlattr* nest) {
  if (!nest) return {};
  auto value = [&](int type) {
    nlattr* found = Find(nest, type);
    return found ? nla_get_u64(found) : uint64_t{0};
  };
  return {.connections = value(IPVS_STATS_ATTR_CONNS),
          .packets_in = value(IPVS_STATS_ATTR_INPKTS),
          .packets_out = value(IPVS_STATS_ATTR_OUTPKTS),
          .bytes_in = value(IPVS_STATS_ATTR_INBYTES),
          .bytes_out = value(IPVS_STATS_ATTR_OUTBYTES)};
}

FoundServer ParseServer(nlattr* nest) {
  FoundServer out;
  VirtualServer& s = out.server;
  const bool v4 = U16(nest, IPVS_SVC_ATTR_AF) == AF_INET;
  s.address = {.protocol = static_cast<uint8_t>(U16(nest, IPVS_SVC_ATTR_PROTOCOL)),
               .ip = Address(nest, IPVS_SVC_ATTR_ADDR, v4),
               .port = ntohs(U16(nest, IPVS_SVC_ATTR_PORT))};
  if (nlattr* name = Find(nest, IPVS_SVC_ATTR_SCHED_NAME)) s.scheduler = nla_get_string(name);
  if (nlattr* flags = Find(nest, IPVS_SVC_ATTR_FLAGS); flags && nla_len(flags) >= 4) {
    const uint32_t bits = static_cast<ip_vs_flags*>(nla_data(flags))->flags;
    s.scheduler_flags = bits & kSchedulerFlags;
    if (bits & IP_VS_SVC_F_PERSISTENT) s.affinity = std::chrono::seconds(U32(nest, IPVS_SVC_ATTR_TIMEOUT));
  }
  out.stats = Stats(Find(nest, IPVS_SVC_ATTR_STATS64));
  return out;
}

FoundDestination ParseDestination(nlattr* nest, bool v4) {
  FoundDestination out;
  if (nlattr* family = Find(nest, IPVS_DEST_ATTR_ADDR_FAMILY)) v4 = nla_get_u16(family) == AF_INET;
  out.destination = {.ip = Address(nest, IPVS_DEST_ATTR_ADDR, v4),
                     .port = ntohs(U16(nest, IPVS_DEST_ATTR_PORT)),
                     .weight = U32(nest, IPVS_DEST_ATTR_WEIGHT)};
  out.translates = (U32(nest, IPVS_DEST_ATTR_FWD_METHOD) & IP_VS_CONN_F_FWD_MASK) == IP_VS_CONN_F_MASQ;
  out.active = U32(nest, IPVS_DEST_ATTR_ACTIVE_CONNS);
  out.inactive = U32(nest, IPVS_DEST_ATTR_INACT_CONNS);
  out.persistent = U32(nest, IPVS_DEST_ATTR_PERSIST_CONNS);
  out.stats = Stats(Find(nest, IPVS_DEST_ATTR_STATS64));
  return out;
}

// The kernel loads the module ip_vs_NAME when a scheduler's name is used for the first time.
Result<> ExplainScheduler(Result<> done, const std::string& scheduler) {
  if (done || done.error().errnum() != ENOENT) return done;
  return Error(Code::kUnimplemented,
               "this kernel has no IPVS scheduler \"" + scheduler + "\": load the module ip_vs_" + scheduler,
               ENOENT);
}

Result<bool> WasThere(Result<> done) {
  if (done) return true;
  if (done.error().errnum() == ENOENT || done.error().errnum() == ESRCH) return false;
  return done.error();
}

}  // namespace

std::string ServerAddress::ToString() const {
  std::string name = protocol == IPPROTO_TCP    ? "TCP "
                     : protocol == IPPROTO_UDP  ? "UDP "
                     : protocol == IPPROTO_SCTP ? "SCTP "
                                                : std::to_string(protocol) + " ";
  return name + (ip.is_v4() ? ip.ToString() : "[" + ip.ToString() + "]") + ":" + std::to_string(port);
}

Result<Ipvs> Ipvs::Open() {
  KEELSON_ASSIGN_OR_RETURN(Socket socket, Socket::OpenGeneric());
  Result<int> family = GenericFamily(socket, IPVS_GENL_NAME);
  if (!family && family.error().Is(Code::kUnimplemented)) {
    return Error(Code::kUnimplemented, "this kernel has no IPVS: load the module ip_vs");
  }
  if (!family) return family.error();
  return Ipvs(std::move(socket), *family);
}

Result<std::vector<FoundServer>> Ipvs::Servers() {
  std::vector<FoundServer> out;
  Request request(family_, NLM_F_DUMP, Header(IPVS_CMD_GET_SERVICE), "list virtual servers");
  KEELSON_RETURN_IF_ERROR(request.Run(socket_, [&](nlmsghdr* message) {
    // Servers by firewall mark have no address, and are not ours.
    nlattr* nest = nlmsg_find_attr(message, sizeof(genlmsghdr), IPVS_CMD_ATTR_SERVICE);
    if (nest && !Find(nest, IPVS_SVC_ATTR_FWMARK)) out.push_back(ParseServer(nest));
  }));
  return out;
}

Result<std::vector<FoundDestination>> Ipvs::Destinations(const ServerAddress& server) {
  std::vector<FoundDestination> out;
  Request request(family_, NLM_F_DUMP, Header(IPVS_CMD_GET_DEST),
                  "list destinations of " + server.ToString());
  request.Nest(IPVS_CMD_ATTR_SERVICE | NLA_F_NESTED, [&] { PutAddress(request, server); });
  KEELSON_RETURN_IF_ERROR(request.Run(socket_, [&](nlmsghdr* message) {
    nlattr* nest = nlmsg_find_attr(message, sizeof(genlmsghdr), IPVS_CMD_ATTR_DEST);
    if (nest) out.push_back(ParseDestination(nest, server.ip.is_v4()));
  }));
  return out;
}

Result<> Ipvs::AddServer(const VirtualServer& server) {
  Request request(family_, 0, Header(IPVS_CMD_NEW_SERVICE),
                  "add virtual server " + server.address.ToString());
  PutServer(request, server);
  return ExplainScheduler(request.Run(socket_), server.scheduler);
}

Result<> Ipvs::ChangeServer(const VirtualServer& server) {
  Request request(family_, 0, Header(IPVS_CMD_SET_SERVICE),
                  "change virtual server " + server.address.ToString());
  PutServer(request, server);
  return ExplainScheduler(request.Run(socket_), server.scheduler);
}

Result<bool> Ipvs::DeleteServer(const ServerAddress& server) {
  Request request(family_, 0, Header(IPVS_CMD_DEL_SERVICE), "delete virtual server " + server.ToString());
  request.Nest(IPVS_CMD_ATTR_SERVICE | NLA_F_NESTED, [&] { PutAddress(request, server); });
  return WasThere(request.Run(socket_));
}

Result<> Ipvs::AddDestination(const ServerAddress& server, const Destination& destination) {
  Request request(family_, 0, Header(IPVS_CMD_NEW_DEST),
                  "add destination " + destination.ip.ToString() + " to " + server.ToString());
  PutDestination(request, server, destination);
  return request.Run(socket_);
}

Result<> Ipvs::ChangeDestination(const ServerAddress& server, const Destination& destination) {
  Request request(family_, 0, Header(IPVS_CMD_SET_DEST),
                  "change destination " + destination.ip.ToString() + " of " + server.ToString());
  PutDestination(request, server, destination);
  return request.Run(socket_);
}

Result<bool> Ipvs::DeleteDestination(const ServerAddress& server, const IpAddress& ip, uint16_t port) {
  Request request(family_, 0, Header(IPVS_CMD_DEL_DEST),
                  "delete destination " + ip.ToString() + " of " + server.ToString());
  PutDestination(request, server, {.ip = ip, .port = port});
  return WasThere(request.Run(socket_));
}

Result<IpvsTimeouts> Ipvs::Timeouts() {
  IpvsTimeouts out;
  Request request(family_, 0, Header(IPVS_CMD_GET_CONFIG), "read the timeouts of IPVS");
  KEELSON_RETURN_IF_ERROR(request.Run(socket_, [&](nlmsghdr* message) {
    auto value = [&](int type) {
      nlattr* found = nlmsg_find_attr(message, sizeof(genlmsghdr), type);
      return std::chrono::seconds(found ? nla_get_u32(found) : 0);
    };
    out = {.tcp = value(IPVS_CMD_ATTR_TIMEOUT_TCP),
           .tcp_fin = value(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN),
           .udp = value(IPVS_CMD_ATTR_TIMEOUT_UDP)};
  }));
  return out;
}

Result<> Ipvs::SetTimeouts(const IpvsTimeouts& timeouts) {
  Request request(family_, 0, Header(IPVS_CMD_SET_CONFIG), "set the timeouts of IPVS");
  auto put = [&](int type, std::chrono::seconds time) {
    if (time.count() > 0) request.PutU32(type, static_cast<uint32_t>(time.count()));
  };
  put(IPVS_CMD_ATTR_TIMEOUT_TCP, timeouts.tcp);
  put(IPVS_CMD_ATTR_TIMEOUT_TCP_FIN, timeouts.tcp_fin);
  put(IPVS_CMD_ATTR_TIMEOUT_UDP, timeouts.udp);
  return request.Run(socket_);
}

Result<> Ipvs::Flush() {
  return Request(family_, 0, Header(IPVS_CMD_FLUSH), "remove virtual servers").Run(socket_);
}

}  // namespace keelson::netlink
