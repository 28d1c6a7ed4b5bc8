#include "cni/agent/bird.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cctype>
#include <cstring>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::cni::agent {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};

// The IPv4 address, or 32 bits derived from the node's name.
std::string RouterId(const NodeInfo& self) {
  if (const IpAddress* ip = self.AddressOf(true)) return ip->ToString();
  const auto mac = TunnelMac(self.name).bytes();
  return fmt::format("{}.{}.{}.{}", mac[2], mac[3], mac[4], mac[5]);
}

std::string StaticProtocol(const Plan& plan, bool v4) {
  std::string routes;
  for (const IpPrefix& cidr : plan.pod_cidrs) {
    // A fallback: unreachable, until the bridge has its own route.
    if (cidr.is_v4() == v4) routes += fmt::format("  route {} unreachable;\n", cidr.ToString());
  }
  if (routes.empty()) return "";
  return fmt::format("protocol static keelson_pods{0} {{\n  ipv{0};\n{1}}}\n", v4 ? 4 : 6, routes);
}

std::string ImportFilter(const Config& config, bool v4) {
  std::string inside;
  for (const IpPrefix& cidr : config.cluster_cidrs) {
    if (cidr.is_v4() == v4) inside += (inside.empty() ? "" : ", ") + cidr.ToString() + "+";
  }
  std::string rule =
      inside.empty() ? fmt::format("net != {}", v4 ? "0.0.0.0/0" : "::/0") : "net ~ [ " + inside + " ]";
  return fmt::format("filter keelson_import{} {{\n  if {} then accept;\n  reject;\n}}\n", v4 ? 4 : 6, rule);
}

// Networks and routes for next-hop lookups: networks on links, and routes that others put into the kernel.
// Without the bridge, whose route would replace the announced one.
std::string DirectProtocol(const Config& config) {
  return fmt::format("protocol direct {{\n  ipv4;\n  ipv6;\n  interface -\"{}\", -\"{}\", \"*\";\n}}\n",
                     config.bridge, config.vxlan_device);
}

std::string KernelProtocol(bool v4) {
  return fmt::format(
      "protocol kernel keelson_kernel{0} {{\n  learn;\n  ipv{0} {{\n    import all;\n    export where source "
      "= "
      "RTS_BGP;\n"
      "  }};\n}}\n",
      v4 ? 4 : 6);
}

std::string PeerProtocol(const Config& config, const NodeInfo& self, const BgpPeer& peer, size_t number) {
  const bool v4 = peer.address.is_v4();
  const IpAddress* local = self.AddressOf(v4);
  return fmt::format(
      "protocol bgp keelson_peer{0} {{\n  local{1} as {2};\n  neighbor {3} as {4};\n  ipv{5} {{\n"
      "    import filter keelson_import{5};\n    export where source = RTS_STATIC;\n    next hop self;\n  "
      "}};\n}}\n",
      number, local ? " " + local->ToString() : "", config.bgp.as_number, peer.address.ToString(),
      peer.as_number, v4 ? 4 : 6);
}

// A reply's lines are "CODE-text", "CODE text" or " text"; the last one has a space after its code.
std::optional<std::string> LastLine(const std::string& reply) {
  for (size_t begin = 0; begin < reply.size();) {
    size_t end = reply.find('\n', begin);
    if (end == std::string::npos) return std::nullopt;
    std::string line = reply.substr(begin, end - begin);
    bool coded = line.size() >= 5 && std::isdigit(static_cast<unsigned char>(line[0]));
    if (coded && line[4] == ' ') return line;
    begin = end + 1;
  }
  return std::nullopt;
}

Result<std::string> ReadReply(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string reply;
  for (;;) {
    if (auto last = LastLine(reply)) {
      if ((*last)[0] == '8' || (*last)[0] == '9') return Error(Code::kInvalid, "BIRD: " + *last);
      return *last;
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd polled{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&polled, 1, static_cast<int>(left.count())) == 0) {
      return Error(Code::kTimeout, "BIRD does not answer");
    }
    char buffer[4096];
    ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("read from BIRD");
    if (got == 0) return Error(Code::kUnavailable, "BIRD has closed its control socket");
    reply.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

std::string BirdConfigText(const Config& config, const Plan& plan, const NodeInfo& self) {
  std::string out = "# Written by kube-cni, which overwrites what is changed here.\n";
  out += "router id " + RouterId(self) + ";\nprotocol device {\n}\n" + DirectProtocol(config);
  for (bool v4 : {true, false}) {
    std::string pods = StaticProtocol(plan, v4);
    if (pods.empty()) continue;
    out += pods + ImportFilter(config, v4) + KernelProtocol(v4);
    for (size_t i = 0; i < config.bgp.peers.size(); ++i) {
      const BgpPeer& peer = config.bgp.peers[i];
      if (peer.address.is_v4() == v4) out += PeerProtocol(config, self, peer, i + 1);
    }
  }
  return out;
}

Result<std::string> BirdCommand(const std::string& socket_path, const std::string& command,
                                std::chrono::milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return Error(Code::kInvalid, "path too long: " + socket_path);
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError("socket");
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Error(Code::kUnavailable, ErrnoError("connect to BIRD at " + socket_path).message());
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  KEELSON_RETURN_IF_ERROR(ReadReply(fd.get(), deadline));  // the greeting
  KEELSON_RETURN_IF_ERROR(WriteAll(fd.get(), command + "\n", socket_path));
  return ReadReply(fd.get(), deadline);
}

Result<int> Bird::AfterRoutes(const Plan& plan, const NodeMap& nodes) {
  std::string text = BirdConfigText(config_, plan, nodes.at(config_.node_name));
  Result<std::string> found = ReadFile(config_.bgp.bird_config);
  const bool same = found && *found == text;
  if (same && loaded_) return 0;
  if (!same) {
    loaded_ = false;
    KEELSON_RETURN_IF_ERROR(WriteFileAtomic(config_.bgp.bird_config, text));
  }
  KEELSON_ASSIGN_OR_RETURN(
      std::string reply,
      BirdCommand(config_.bgp.bird_socket, "configure \"" + config_.bgp.bird_config + "\"", kPatience));
  log::Info("BIRD reads its configuration", {{"path", config_.bgp.bird_config}, {"reply", reply}});
  loaded_ = true;
  return same ? 0 : 1;
}

}  // namespace keelson::cni::agent
