#include "proxy/nftables/testing/packet_fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "lib/base/socket_address.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"

namespace keelson::proxy {
namespace {

Result<UniqueFd> NewSocket(const IpAddress& ip) {
  UniqueFd fd(::socket(ip.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError("socket");
  return fd;
}

// One more pod: a veth from the bridge into `pod`, with addresses and default routes.
Result<> AddPod(netlink::Socket& node, int bridge, const linux::NetNs& pod, int number) {
  std::string n = std::to_string(number);
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(node, {.name = "pod" + n, .master = bridge, .up = true},
                                              {.name = "eth0", .netns_fd = pod.fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(node, "pod" + n));
  KEELSON_RETURN_IF_ERROR(netlink::ChangePort(node, port.index, {.hairpin = true}));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(pod));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link eth0, netlink::GetLink(inside, "eth0"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(inside, eth0.index));
  for (const std::string& address : {"10.1.0." + n + "/24", "fd01::" + n + "/64"}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse(address)));
  }
  for (auto [destination, gateway] : {std::pair("0.0.0.0/0", "10.1.0.254"), std::pair("::/0", "fd01::fe")}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(inside, {.destination = *IpPrefix::Parse(destination),
                                                       .gateway = *IpAddress::Parse(gateway),
                                                       .link_index = eth0.index}));
  }
  return {};
}

Result<> AddClient(netlink::Socket& node, const linux::NetNs& client) {
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(node, {.name = "outside", .up = true},
                                              {.name = "eth0", .netns_fd = client.fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link outside, netlink::GetLink(node, "outside"));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(node, outside.index, *IpPrefix::Parse("172.30.0.1/24")));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(node, outside.index, *IpPrefix::Parse("fd30::1/64")));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(client));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link eth0, netlink::GetLink(inside, "eth0"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(inside, eth0.index));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse("172.30.0.2/24")));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse("fd30::2/64")));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse("172.30.0.9/24")));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse("fd30::9/64")));
  KEELSON_RETURN_IF_ERROR(netlink::AddRoute(inside, {.destination = *IpPrefix::Parse("0.0.0.0/0"),
                                                     .gateway = *IpAddress::Parse("172.30.0.1"),
                                                     .link_index = eth0.index}));
  // Service addresses need some route before they are translated.
  for (auto [destination, gateway] : {std::pair("0.0.0.0/0", "172.30.0.2"), std::pair("::/0", "fd30::2")}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(node, {.destination = *IpPrefix::Parse(destination),
                                                     .gateway = *IpAddress::Parse(gateway),
                                                     .link_index = outside.index}));
  }
  return netlink::AddRoute(inside, {.destination = *IpPrefix::Parse("::/0"),
                                    .gateway = *IpAddress::Parse("fd30::1"),
                                    .link_index = eth0.index});
}

// IPv6 looks for somebody with the same link-local address first, for two seconds: nobody else is here.
Result<> NoDuplicates() {
  Result<> set = linux::WriteSysctl("net/ipv6/conf/default/accept_dad", "0");
  return !set && set.error().Is(Code::kNotFound) ? Result<>() : set;
}

// Refusals by ICMP are counted one by one here.
Result<> LiftIcmpLimits() {
  for (auto [key, value] :
       {std::pair("net/ipv4/icmp_ratelimit", "0"), std::pair("net/ipv6/icmp/ratelimit", "0"),
        std::pair("net/ipv4/icmp_msgs_per_sec", "1000000"),
        std::pair("net/ipv4/icmp_msgs_burst", "1000000")}) {
    Result<> set = linux::WriteSysctl(key, value);
    if (!set && !set.error().Is(Code::kNotFound)) return set;
  }
  return {};
}

Result<> AddRemote(netlink::Socket& node, const linux::NetNs& remote) {
  KEELSON_RETURN_IF_ERROR(
      netlink::CreateVeth(node, {.name = "other", .up = true}, {.name = "eth0", .netns_fd = remote.fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link other, netlink::GetLink(node, "other"));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(remote));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link eth0, netlink::GetLink(inside, "eth0"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(inside, eth0.index));
  for (const char* address : {"172.31.0.1/24", "fd31::1/64"}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(node, other.index, *IpPrefix::Parse(address)));
  }
  for (const char* address : {"172.31.0.2/24", "fd31::2/64", "10.2.0.1/32", "fd02::1/128"}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(inside, eth0.index, *IpPrefix::Parse(address)));
  }
  for (auto [destination, gateway] : {std::pair("0.0.0.0/0", "172.31.0.1"), std::pair("::/0", "fd31::1")}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(inside, {.destination = *IpPrefix::Parse(destination),
                                                       .gateway = *IpAddress::Parse(gateway),
                                                       .link_index = eth0.index}));
  }
  for (auto [destination, gateway] :
       {std::pair("10.2.0.0/24", "172.31.0.2"), std::pair("fd02::/64", "fd31::2")}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(node, {.destination = *IpPrefix::Parse(destination),
                                                     .gateway = *IpAddress::Parse(gateway),
                                                     .link_index = other.index}));
  }
  return {};
}

}  // namespace

EchoServer::EchoServer(std::string name, const linux::NetNs& netns, const IpAddress& ip, uint16_t port)
    : name_(std::move(name)) {
  Result<> ready = netns.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(listener_, NewSocket(ip));
    int on = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    SocketAddress address(ip, port);
    if (::bind(listener_.get(), address.get(), address.size()) != 0) return ErrnoError("bind");
    if (::listen(listener_.get(), 64) != 0) return ErrnoError("listen");
    return {};
  });
  if (!ready) std::abort();
  thread_ = std::jthread([this](std::stop_token stop) { Serve(stop); });
}

EchoServer::~EchoServer() {
  thread_.request_stop();
  thread_.join();
}

void EchoServer::Serve(std::stop_token stop) {
  std::vector<UniqueFd> peers;
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
    for (const UniqueFd& peer : peers) polled.push_back({peer.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), 20) <= 0) continue;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      char buffer[256];
      ssize_t got = ::recv(polled[i].fd, buffer, sizeof buffer, 0);
      if (got > 0) {
        (void)::send(polled[i].fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL);
      } else {
        std::erase_if(peers, [&](const UniqueFd& fd) { return fd.get() == polled[i].fd; });
      }
    }
    if (!polled[0].revents) continue;
    SocketAddress from;
    UniqueFd peer(::accept4(listener_.get(), from.get(), from.filled(), SOCK_CLOEXEC));
    if (!peer) continue;
    std::string greeting = name_ + " " + from.ip().ToString() + "\n";
    (void)::send(peer.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    peers.push_back(std::move(peer));
  }
}

UdpServer::UdpServer(std::string name, const linux::NetNs& netns, const IpAddress& ip, uint16_t port)
    : name_(std::move(name)) {
  Result<> ready = netns.Run([&]() -> Result<> {
    socket_.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress address(ip, port);
    if (::bind(socket_.get(), address.get(), address.size()) != 0) return ErrnoError("bind");
    return {};
  });
  if (!ready) std::abort();
  thread_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      pollfd polled{socket_.get(), POLLIN, 0};
      if (::poll(&polled, 1, 20) <= 0) continue;
      char buffer[64];
      SocketAddress from;
      if (::recvfrom(socket_.get(), buffer, sizeof buffer, 0, from.get(), from.filled()) < 0) continue;
      (void)::sendto(socket_.get(), name_.data(), name_.size(), 0, from.get(), from.size());
    }
  });
}

UdpServer::~UdpServer() {
  thread_.request_stop();
  thread_.join();
}

UdpClient::UdpClient(const linux::NetNs& from) {
  Result<> opened = from.Run([&]() -> Result<> {
    socket_.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return {};
  });
  if (!opened) std::abort();
}

std::string UdpClient::Ask(const IpAddress& ip, uint16_t port, std::chrono::milliseconds limit) {
  SocketAddress to(ip, port);
  (void)::sendto(socket_.get(), "who", 3, 0, to.get(), to.size());
  pollfd polled{socket_.get(), POLLIN, 0};
  if (::poll(&polled, 1, static_cast<int>(limit.count())) <= 0) return "";
  char buffer[64];
  ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
}

Result<Connection> Connection::Open(const linux::NetNs& from, const IpAddress& ip, uint16_t port,
                                    std::chrono::milliseconds limit) {
  Connection out;
  KEELSON_RETURN_IF_ERROR(from.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(out.fd_, NewSocket(ip));
    return {};
  }));
  timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  ::setsockopt(out.fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  ::setsockopt(out.fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  SocketAddress to(ip, port);
  if (::connect(out.fd_.get(), to.get(), to.size()) != 0) {
    return Error::FromErrno(errno == EINPROGRESS ? ETIMEDOUT : errno, "connect");
  }
  std::string greeting;
  char c = 0;
  while (::recv(out.fd_.get(), &c, 1, 0) == 1 && c != '\n') greeting += c;
  auto space = greeting.find(' ');
  if (c != '\n' || space == std::string::npos) return Error(Code::kUnavailable, "no greeting");
  out.server_ = greeting.substr(0, space);
  out.seen_as_ = greeting.substr(space + 1);
  return out;
}

bool Connection::Echoes() {
  char buffer[8] = {};
  return ::send(fd_.get(), "ping", 4, MSG_NOSIGNAL) == 4 && ::recv(fd_.get(), buffer, 4, MSG_WAITALL) == 4 &&
         std::string_view(buffer, 4) == "ping";
}

Result<std::unique_ptr<World>> World::Make() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs node_ns, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs client_ns, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs pod1_ns, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs pod2_ns, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs remote_ns, linux::NetNs::Make());
  std::unique_ptr<World> world(new World{std::move(node_ns), std::move(client_ns), std::move(pod1_ns),
                                         std::move(pod2_ns), std::move(remote_ns)});
  for (const linux::NetNs* place :
       {&world->node, &world->client, &world->pod1, &world->pod2, &world->remote}) {
    KEELSON_RETURN_IF_ERROR(place->Run(NoDuplicates));
  }
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket node, netlink::Socket::OpenIn(world->node));
  for (const char* key : {"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"}) {
    KEELSON_RETURN_IF_ERROR(world->node.Run([&] { return linux::WriteSysctl(key, "1"); }));
  }
  KEELSON_RETURN_IF_ERROR(world->node.Run(LiftIcmpLimits));
  KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(node, "br0", 0, netlink::MacAddress({2, 0, 0, 0, 0, 1})));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(node, "br0"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(node, bridge.index));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link lo, netlink::GetLink(node, "lo"));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(node, lo.index));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(node, bridge.index, *IpPrefix::Parse("10.1.0.254/24")));
  KEELSON_RETURN_IF_ERROR(netlink::AddAddress(node, bridge.index, *IpPrefix::Parse("fd01::fe/64")));
  KEELSON_RETURN_IF_ERROR(AddPod(node, bridge.index, world->pod1, 1));
  KEELSON_RETURN_IF_ERROR(AddPod(node, bridge.index, world->pod2, 2));
  KEELSON_RETURN_IF_ERROR(AddClient(node, world->client));
  KEELSON_RETURN_IF_ERROR(AddRemote(node, world->remote));
  for (const linux::NetNs* pod : {&world->pod1, &world->pod2}) {  // which may connect to itself
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket inside, netlink::Socket::OpenIn(*pod));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link own, netlink::GetLink(inside, "lo"));
    KEELSON_RETURN_IF_ERROR(netlink::SetUp(inside, own.index));
  }
  return world;
}

}  // namespace keelson::proxy
