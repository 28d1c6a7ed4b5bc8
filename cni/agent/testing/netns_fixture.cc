#include "cni/agent/testing/netns_fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/base/file.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"

namespace keelson::cni::agent {
namespace {

constexpr uint16_t kEchoPort = 7;

void Must(const Result<>& result) {
  if (result) return;
  std::fprintf(stderr, "test network: %s\n", result.error().message().c_str());
  std::abort();
}

sockaddr_in6 ToSocketAddress(const IpAddress& ip, uint16_t port) {
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  std::string mapped =
      ip.is_v4() ? std::string(10, '\0') + "\xff\xff" + std::string(ip.bytes()) : std::string(ip.bytes());
  std::memcpy(&out.sin6_addr, mapped.data(), 16);
  return out;
}

std::string TextOf(const sockaddr_in6& address) {
  std::string_view bytes(reinterpret_cast<const char*>(&address.sin6_addr), 16);
  bool v4 = IN6_IS_ADDR_V4MAPPED(&address.sin6_addr);
  return IpAddress::FromBytes(v4 ? bytes.substr(12) : bytes).ToString();
}

UniqueFd UdpSocket(const linux::NetNs& netns, uint16_t port, const char* at = "::") {
  UniqueFd fd;
  Must(netns.Run([&]() -> Result<> {
    fd.Reset(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any = ToSocketAddress(*IpAddress::Parse(at), port);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) return ErrnoError("bind");
    return {};
  }));
  return fd;
}

bool Readable(int fd, int milliseconds) {
  pollfd polled{fd, POLLIN, 0};
  return ::poll(&polled, 1, milliseconds) > 0;
}

Result<> Up(netlink::Socket& socket, const char* name, std::vector<std::string> addresses) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, name));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, link.index));
  for (const std::string& address : addresses) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(socket, link.index, *IpPrefix::Parse(address)));
  }
  return {};
}

Result<> DefaultRoutes(netlink::Socket& socket, const char* link, const std::string& v4,
                       const std::string& v6) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Link out, netlink::GetLink(socket, link));
  for (auto [all, gateway] : {std::pair("0.0.0.0/0", v4), std::pair("::/0", v6)}) {
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(socket, {.destination = *IpPrefix::Parse(all),
                                                       .gateway = *IpAddress::Parse(gateway),
                                                       .link_index = out.index}));
  }
  return {};
}

Result<> Forward() {
  KEELSON_RETURN_IF_ERROR(linux::WriteSysctl("net/ipv4/ip_forward", "1"));
  return linux::WriteSysctl("net/ipv6/conf/all/forwarding", "1");
}

// Connects a port of the switch to `there` as eth0.
Result<> Plug(const linux::NetNs& lan, const linux::NetNs& there, const std::string& port, const char* name) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenIn(lan));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(socket, "sw0"));
  return netlink::CreateVeth(socket, {.name = port, .master = bridge.index, .up = true},
                             {.name = name, .netns_fd = there.fd()}, 0);
}

}  // namespace

Echo::Echo(const linux::NetNs& netns, const char* address) : socket_(UdpSocket(netns, kEchoPort, address)) {
  thread_ = std::jthread([fd = socket_.get()](std::stop_token stop) {
    while (!stop.stop_requested()) {
      if (!Readable(fd, 20)) continue;
      char buffer[64];
      sockaddr_in6 from{};
      socklen_t size = sizeof from;
      if (::recvfrom(fd, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &size) < 0) continue;
      std::string text = TextOf(from);
      (void)::sendto(fd, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
  });
}

std::string SeenAs(const linux::NetNs& from, const IpAddress& to) {
  UniqueFd fd = UdpSocket(from, 0);
  sockaddr_in6 address = ToSocketAddress(to, kEchoPort);
  if (::sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return "";
  if (!Readable(fd.get(), 5000)) return "";
  char buffer[64];
  ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
}

Traffic::Traffic(const linux::NetNs& from, const IpAddress& to) : socket_(UdpSocket(from, 0)) {
  receiver_ = std::jthread([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      char buffer[64];
      if (!Readable(socket_.get(), 20) || ::recv(socket_.get(), buffer, sizeof buffer, 0) <= 0) continue;
      ++answered_;
      answered_.notify_all();
    }
  });
  sender_ = std::jthread([this, address = ToSocketAddress(to, kEchoPort)](std::stop_token stop) {
    while (!stop.stop_requested()) {
      ++sent_;
      (void)::sendto(socket_.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

void Traffic::AwaitReplies(int more) {
  int target = answered_ + more;
  for (int now = answered_; now < target; now = answered_) answered_.wait(now);
}

int Traffic::Finish() {
  sender_.request_stop();
  sender_.join();
  // Some may be lost, so wait until no more replies arrive.
  for (int before = -1; answered_ < sent_ && answered_ != before;) {
    before = answered_;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  receiver_.request_stop();
  receiver_.join();
  return sent_ - answered_;
}

IpAddress NodeSite::PodIp(bool v4) const {
  std::string n = std::to_string(number);
  return *IpAddress::Parse(v4 ? "10.244." + n + ".2" : "fd44:" + n + "::2");
}

RunningAgent::RunningAgent(const NodeSite& site, std::shared_ptr<client::Transport> api, Config config,
                           std::unique_ptr<Extension> extension)
    : health_(std::chrono::minutes(3), Clock::Real()),
      nodes_(NodeSource(std::move(api)), [this] { syncer_->NodesChanged(); }) {
  Must(site.host.Run([&]() -> Result<> {
    SyncerOptions options{.nft_poll = std::chrono::milliseconds(20),
                          .min_interval = std::chrono::milliseconds(1)};
    KEELSON_ASSIGN_OR_RETURN(syncer_, Syncer::Open(
                                          config, [this] { return nodes_.Nodes(); }, health_, options));
    if (extension) syncer_->AddExtension(std::move(extension));
    // Threads inherit the namespace of the thread that starts them.
    threads_.emplace_back([this](std::stop_token stop) { (void)syncer_->RunMonitor(stop); });
    threads_.emplace_back([this](std::stop_token stop) { (void)syncer_->Run(stop); });
    threads_.emplace_back([this](std::stop_token stop) { (void)nodes_.Run(stop); });
    return {};
  }));
}

RunningAgent::~RunningAgent() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

bool RunningAgent::Await(const std::function<bool()>& condition) {
  for (int i = 0; i < 50; ++i) {
    uint64_t before = syncer_->syncs();
    if (condition()) return true;
    syncer_->AwaitSyncs(before + 1);
  }
  return false;
}

Network::Network(linux::NetNs lan, linux::NetNs router)
    : lan_(std::move(lan)), router_(std::move(router)), api_(std::make_shared<client::FakeApi>()) {}

Network::~Network() { (void)RemoveTree(dir_); }

Result<std::unique_ptr<Network>> Network::Make() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs lan, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs router, linux::NetNs::Make());
  std::unique_ptr<Network> network(new Network(std::move(lan), std::move(router)));
  KEELSON_RETURN_IF_ERROR(network->Build());
  return network;
}

Result<> Network::Build() {
  char dir[] = "/tmp/kube-cni-test-XXXXXX";
  if (!::mkdtemp(dir)) return ErrnoError("mkdtemp");
  dir_ = dir;
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket lan, netlink::Socket::OpenIn(lan_));
  KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(lan, "sw0", 0, netlink::MacAddress({2, 0, 0, 0, 0, 1})));
  KEELSON_RETURN_IF_ERROR(Up(lan, "sw0", {}));
  KEELSON_RETURN_IF_ERROR(Plug(lan_, router_, "router", "eth0"));
  KEELSON_RETURN_IF_ERROR(router_.Run(Forward));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket router, netlink::Socket::OpenIn(router_));
  KEELSON_RETURN_IF_ERROR(Up(router, "lo", {"192.0.2.1/32", "2001:db8::1/128"}));
  return Up(router, "eth0", {"10.0.0.254/24", "fd10::fe/64"});
}

Result<> Network::Connect(NodeSite& site, bool behind_router) {
  std::string n = std::to_string(site.number);
  std::string net4 = behind_router ? "10.9.0." : "10.0.0.", net6 = behind_router ? "fd19::" : "fd10::";
  if (behind_router) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket router, netlink::Socket::OpenIn(router_));
    KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(router, {.name = "far", .up = true},
                                                {.name = "eth0", .netns_fd = site.host.fd()}, 0));
    KEELSON_RETURN_IF_ERROR(Up(router, "far", {"10.9.0.254/24", "fd19::fe/64"}));
  } else {
    KEELSON_RETURN_IF_ERROR(Plug(lan_, site.host, "node" + n, "eth0"));
  }
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::OpenIn(site.host));
  KEELSON_RETURN_IF_ERROR(Up(host, "lo", {}));
  KEELSON_RETURN_IF_ERROR(Up(host, "eth0", {net4 + n + "/24", net6 + n + "/64"}));
  site.addresses = {*IpAddress::Parse(net4 + n), *IpAddress::Parse(net6 + n)};
  return DefaultRoutes(host, "eth0", net4 + "254", net6 + "fe");
}

Result<> Network::AddPod(NodeSite& site) {
  std::string n = std::to_string(site.number);
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::OpenIn(site.host));
  KEELSON_RETURN_IF_ERROR(
      netlink::CreateBridge(host, "keelson0", 0, netlink::MacAddress({2, 0, 0, 0, 1, 1})));
  KEELSON_RETURN_IF_ERROR(Up(host, "keelson0", {"10.244." + n + ".1/24", "fd44:" + n + "::1/64"}));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link bridge, netlink::GetLink(host, "keelson0"));
  KEELSON_RETURN_IF_ERROR(netlink::CreateVeth(host, {.name = "pod", .master = bridge.index, .up = true},
                                              {.name = "eth0", .netns_fd = site.pod.fd()}, 0));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket pod, netlink::Socket::OpenIn(site.pod));
  KEELSON_RETURN_IF_ERROR(Up(pod, "lo", {}));
  KEELSON_RETURN_IF_ERROR(Up(pod, "eth0", {"10.244." + n + ".2/24", "fd44:" + n + "::2/64"}));
  return DefaultRoutes(pod, "eth0", "10.244." + n + ".1", "fd44:" + n + "::1");
}

Result<> Network::AddNode(const std::string& name, bool behind_router, bool dual_stack) {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs host, linux::NetNs::Make());
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs pod, linux::NetNs::Make());
  int number = static_cast<int>(sites_.size()) + 1;
  auto site = std::make_unique<NodeSite>(NodeSite{name, number, std::move(host), std::move(pod), {}});
  KEELSON_RETURN_IF_ERROR(Connect(*site, behind_router));
  KEELSON_RETURN_IF_ERROR(AddPod(*site));
  api_->Put(ObjectOf(*site, dual_stack));
  sites_.push_back(std::move(site));
  return {};
}

const NodeSite& Network::site(const std::string& name) const {
  for (const auto& site : sites_) {
    if (site->name == name) return *site;
  }
  std::abort();
}

corev1::Node Network::ObjectOf(const NodeSite& site, bool dual_stack) const {
  std::string n = std::to_string(site.number);
  corev1::Node node;
  node.mutable_metadata()->set_name(site.name);
  node.mutable_spec()->set_pod_cidr("10.244." + n + ".0/24");
  node.mutable_spec()->add_pod_cidrs("10.244." + n + ".0/24");
  if (dual_stack) node.mutable_spec()->add_pod_cidrs("fd44:" + n + "::/64");
  for (const IpAddress& ip : site.addresses) {
    if (!dual_stack && ip.is_v6()) continue;
    auto* address = node.mutable_status()->add_addresses();
    address->set_type("InternalIP");
    address->set_address(ip.ToString());
  }
  return node;
}

Config Network::ConfigFor(const std::string& name, Mode mode) const {
  Config config;
  config.node_name = name;
  config.mode = mode;
  config.conf_dir = dir_ + "/" + name;
  config.cluster_cidrs = *ParseCidrs("10.244.0.0/16,fd44::/16");
  return config;
}

}  // namespace keelson::cni::agent
