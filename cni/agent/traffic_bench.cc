// TCP between pods: throughput and round trips for each kind of route, compared with a bare veth pair.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

#include "cni/agent/testing/netns_fixture.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"

namespace keelson::cni::agent {
namespace {

constexpr uint16_t kPort = 5001;

sockaddr_in ToSocketAddress(const IpAddress& ip) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(kPort);
  std::memcpy(&out.sin_addr, ip.bytes().data(), 4);
  return out;
}

Result<UniqueFd> TcpSocket(const linux::NetNs& netns) {
  UniqueFd fd;
  KEELSON_RETURN_IF_ERROR(netns.Run([&]() -> Result<> {
    fd.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd ? Result<>() : ErrnoError("socket");
  }));
  return fd;
}

// One connection: `client` in one namespace, and a thread at the other end that discards data, or answers
// each byte with one.
class Pair {
 public:
  static Result<std::unique_ptr<Pair>> Open(const linux::NetNs& from, const linux::NetNs& to,
                                            const IpAddress& ip, bool answer) {
    auto pair = std::make_unique<Pair>();
    KEELSON_ASSIGN_OR_RETURN(UniqueFd listener, TcpSocket(to));
    sockaddr_in address = ToSocketAddress(ip);
    if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      return ErrnoError("bind");
    }
    if (::listen(listener.get(), 1) != 0) return ErrnoError("listen");
    KEELSON_ASSIGN_OR_RETURN(pair->client_, TcpSocket(from));
    if (::connect(pair->client_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      return ErrnoError("connect");
    }
    pair->server_.Reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    pair->thread_ = std::jthread([fd = pair->server_.get(), answer] {
      std::string buffer(256 << 10, '\0');
      int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      for (ssize_t got; (got = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
        if (answer && ::send(fd, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL) < 0) return;
      }
    });
    return pair;
  }
  ~Pair() { ::shutdown(client_.get(), SHUT_RDWR); }
  int client() const { return client_.get(); }

 private:
  UniqueFd client_, server_;
  std::jthread thread_;
};

// The network, agents on all nodes, and a second pod (10.244.1.3) on node a. Made once for all benchmarks.
struct World {
  std::unique_ptr<Network> network;
  std::vector<std::unique_ptr<RunningAgent>> agents;
  std::optional<linux::NetNs> second;

  static Result<std::unique_ptr<World>> Make(Mode mode) {
    auto world = std::make_unique<World>();
    KEELSON_ASSIGN_OR_RETURN(world->network, Network::Make());
    KEELSON_RETURN_IF_ERROR(world->network->AddNode("a"));
    KEELSON_RETURN_IF_ERROR(world->network->AddNode("b"));
    KEELSON_RETURN_IF_ERROR(world->network->AddNode("far", true));
    for (const char* name : {"a", "b", "far"}) {
      world->agents.push_back(std::make_unique<RunningAgent>(
          world->network->site(name), world->network->api(), world->network->ConfigFor(name, mode)));
      world->agents.back()->syncer().AwaitSyncs(1);
    }
    KEELSON_ASSIGN_OR_RETURN(world->second, linux::NetNs::Make());
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::OpenIn(world->network->site("a").host));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(host, "keelson0"));
    KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(host, {.name = "pod2", .master = bridge.index, .up = true},
                                                {.name = "eth0", .netns_fd = world->second->fd()}, 0));
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket pod, netlink::Socket::OpenIn(*world->second));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link eth0, netlink::GetLink(pod, "eth0"));
    KEELSON_RETURN_IF_ERROR(netlink::SetUp(pod, eth0.index));
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(pod, eth0.index, *IpPrefix::Parse("10.244.1.3/24")));
    return world;
  }
};

enum Way { kBareVeth, kOneNode, kHostGateway, kTunnel };

Result<std::unique_ptr<Pair>> Connect(int way, bool answer) {
  static Result<std::unique_ptr<World>> direct = World::Make(Mode::kAuto),
                                        tunnels = World::Make(Mode::kVxlan);
  if (!direct) return direct.error();
  if (!tunnels) return tunnels.error();
  Network& network = *(way == kTunnel ? *tunnels : *direct)->network;
  const NodeSite& a = network.site("a");
  const NodeSite& b = network.site("b");
  const NodeSite& far = network.site("far");
  if (way == kBareVeth) return Pair::Open(network.router(), far.host, far.addresses[0], answer);
  if (way == kOneNode) return Pair::Open(*(*direct)->second, a.pod, a.PodIp(), answer);
  return Pair::Open(a.pod, b.pod, b.PodIp(), answer);
}

void Throughput(benchmark::State& state) {
  auto pair = Connect(static_cast<int>(state.range(0)), false);
  if (!pair) return state.SkipWithError(pair.error().message().c_str());
  std::string block(256 << 10, 'x');
  for (auto _ : state) {
    if (::send((*pair)->client(), block.data(), block.size(), MSG_NOSIGNAL) < 0) {
      return state.SkipWithError("send");
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(block.size()));
}

void RoundTrip(benchmark::State& state) {
  auto pair = Connect(static_cast<int>(state.range(0)), true);
  if (!pair) return state.SkipWithError(pair.error().message().c_str());
  for (auto _ : state) {
    char byte = 'x';
    if (::send((*pair)->client(), &byte, 1, MSG_NOSIGNAL) != 1 ||
        ::recv((*pair)->client(), &byte, 1, 0) != 1) {
      return state.SkipWithError("connection lost");
    }
  }
}

// 0: a bare veth pair between two namespaces; 1: two pods of one node; 2: host-gw; 3: VXLAN.
BENCHMARK(Throughput)->DenseRange(kBareVeth, kTunnel)->UseRealTime()->MinTime(2);
BENCHMARK(RoundTrip)
    ->DenseRange(kBareVeth, kTunnel)
    ->UseRealTime()
    ->MinTime(1)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace keelson::cni::agent
