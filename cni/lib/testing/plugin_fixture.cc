#include "cni/lib/testing/plugin_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "cni/lib/json.h"
#include "lib/base/file.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"

namespace keelson::cni {
namespace {

// Starts a program with `input` on stdin in the calling thread's network namespace.
Reply Execute(const std::string& program, const std::vector<std::string>& variables,
              const std::string& input) {
  UniqueFd in(::memfd_create("in", MFD_CLOEXEC)), out(::memfd_create("out", MFD_CLOEXEC));
  (void)WriteAll(in.get(), input, "memory");
  ::lseek(in.get(), 0, SEEK_SET);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out.get(), 1);
  std::vector<char*> pointers;
  for (const std::string& v : variables) pointers.push_back(const_cast<char*>(v.c_str()));
  pointers.push_back(nullptr);
  char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_t pid;
  int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {127, "cannot start " + program};
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::lseek(out.get(), 0, SEEK_SET);
  std::string output = *ReadAll(out.get(), "memory");
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), output};
  return {WEXITSTATUS(status), output};
}

// An IPv4 peer of an IPv6 socket has the address ::ffff:a.b.c.d.
std::string TextOf(const sockaddr_in6& peer) {
  std::string bytes(reinterpret_cast<const char*>(&peer.sin6_addr), 16);
  if (IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr)) bytes = bytes.substr(12);
  return IpAddress::FromBytes(bytes).ToString();
}

sockaddr_in6 AddressOf(const std::string& text, uint16_t port) {
  IpAddress address = *IpAddress::Parse(text);
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  auto* bytes = reinterpret_cast<unsigned char*>(&out.sin6_addr);
  if (address.is_v4()) bytes[10] = bytes[11] = 0xff;
  std::memcpy(bytes + 16 - address.bytes().size(), address.bytes().data(), address.bytes().size());
  return out;
}

}  // namespace

Container::Container(const std::string& name, const std::string& dir)
    : id(name), path(dir + "/" + name), netns(*linux::NetNs::Make()) {
  EXPECT_TRUE(netns.BindTo(path));
  (void)netlink::SetUp(*std::make_unique<netlink::Socket>(*netlink::Socket::OpenIn(netns)), 1);  // lo
}
Container::~Container() { (void)linux::RemoveNetNs(path); }

void PluginFixture::SetUp() {
  auto host = linux::NetNs::Make();
  if (!host) GTEST_SKIP() << host.error().message();
  host_ = std::make_unique<linux::NetNs>(std::move(*host));
  auto routing = Routing(*host_);
  (void)netlink::SetUp(routing, 1);  // lo
  char pattern[] = "/tmp/keelson-cni-XXXXXX";
  dir_ = ::mkdtemp(pattern);
  a_ = std::make_unique<Container>("a", dir_);
  b_ = std::make_unique<Container>("b", dir_);
}

void PluginFixture::TearDown() {
  a_.reset();
  b_.reset();
  if (!dir_.empty()) (void)RemoveTree(dir_);
}

Reply PluginFixture::Call(const std::string& plugin, const std::string& command, const Container& c,
                          const std::string& config) {
  return Call(plugin, command, c, config, {});
}

Reply PluginFixture::Call(const std::string& plugin, const std::string& command, const Container& c,
                          const std::string& config, const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  for (const std::string& usual :
       {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + c.id, "CNI_NETNS=" + c.path,
        std::string("CNI_IFNAME=eth0"), std::string("CNI_PATH=") + KEELSON_CNI_BIN}) {
    std::string name = usual.substr(0, usual.find('=') + 1);
    bool given =
        std::any_of(all.begin(), all.end(), [&](const std::string& v) { return v.starts_with(name); });
    if (!given) all.push_back(usual);
  }
  Reply reply;
  EXPECT_TRUE(host_->Run([&]() -> Result<> {
    reply =
        Execute(plugin.starts_with("/") ? plugin : std::string(KEELSON_CNI_BIN) + "/" + plugin, all, config);
    return {};
  }));
  return reply;
}

std::string PluginFixture::HostLocal(const std::string& ranges) const {
  return R"({"type":"host-local","dataDir":")" + dir_ + R"(/ipam","ranges":)" + ranges + "}";
}

std::string PluginFixture::BridgeWith(const std::string& more, const std::string& ipam) const {
  return R"({"cniVersion":"1.1.0","name":"net","type":"bridge","bridge":"br0",)" + more + R"("ipam":)" +
         ipam + "}";
}

std::string PluginFixture::Bridge(const std::string& more) const {
  return BridgeWith(more, HostLocal(R"([[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]])"));
}

std::string PluginFixture::Join(const Container& c, const std::string& more) {
  Reply added = Call("bridge", "ADD", c, Bridge(more));
  EXPECT_EQ(added.exit_code, 0) << added.output;
  return added.output;
}

AddResult PluginFixture::Parse(const Reply& reply) {
  EXPECT_EQ(reply.exit_code, 0) << reply.output;
  auto json = ParseJson(reply.output, "result");
  EXPECT_TRUE(json) << reply.output;
  auto result = json ? ParseResult(*json) : Outcome<AddResult>(AddResult());
  EXPECT_TRUE(result);
  return result ? *result : AddResult();
}

std::optional<nft::Ruleset> PluginFixture::Table(nft::Family family, const std::string& name) const {
  auto kernel = *nft::OpenKernel(*host_);
  return *kernel->Read({family, name});
}

std::string PluginFixture::Sysctl(const std::string& key) const {
  std::string value;
  (void)host_->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(value, linux::ReadSysctl(key));
    return {};
  });
  return value;
}

std::unique_ptr<linux::NetNs> PluginFixture::Outside() {
  auto out = std::make_unique<linux::NetNs>(*linux::NetNs::Make());
  auto here = Routing(*host_), there = Routing(*out);
  EXPECT_TRUE(
      netlink::CreateVeth(here, {.name = "uplink", .up = true}, {.name = "eth0", .netns_fd = out->fd()}, 0));
  netlink::Link uplink = *netlink::GetLink(here, "uplink"), eth0 = *netlink::GetLink(there, "eth0");
  EXPECT_TRUE(netlink::AddAddress(here, uplink.index, *IpPrefix::Parse("192.0.2.1/24")));
  EXPECT_TRUE(netlink::AddAddress(there, eth0.index, *IpPrefix::Parse("192.0.2.2/24")));
  EXPECT_TRUE(netlink::SetUp(there, eth0.index));
  return out;
}

std::string WithField(const std::string& config, const std::string& name, const std::string& json) {
  std::string out = config.substr(0, config.find_last_of('}'));
  return out + ",\"" + name + "\":" + json + "}";
}

class EchoThread {
 public:
  explicit EchoThread(std::function<void()> body) : thread_(std::move(body)) {}
  ~EchoThread() { thread_.join(); }

 private:
  std::thread thread_;
};

EchoServer::EchoServer(const linux::NetNs& netns, int socket_type, uint16_t port)
    : type_(socket_type), port_(port), stop_(::eventfd(0, EFD_CLOEXEC)) {
  Result<> listening = netns.Run([&]() -> Result<> {
    listener_.Reset(::socket(AF_INET6, type_ | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int off = 0, on = 1;
    ::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in6 any = AddressOf("::", port_);
    socklen_t size = sizeof any;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), size) != 0) return ErrnoError("bind");
    if (type_ == SOCK_STREAM && ::listen(listener_.get(), 16) != 0) return ErrnoError("listen");
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size);
    port_ = ntohs(any.sin6_port);
    return {};
  });
  EXPECT_TRUE(listening) << listening.error().message();
  thread_ = std::make_unique<EchoThread>([this] { Serve(); });
}

EchoServer::~EchoServer() {
  uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.reset();
}

void EchoServer::Serve() {
  pollfd waiting[2] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                       {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (::poll(waiting, 2, -1) > 0 && waiting[1].revents == 0) {
    sockaddr_in6 peer{};
    socklen_t size = sizeof peer;
    auto* where = reinterpret_cast<sockaddr*>(&peer);
    char buffer[64];
    if (type_ == SOCK_STREAM) {
      UniqueFd connection(::accept4(listener_.get(), where, &size, SOCK_CLOEXEC));
      std::string text = TextOf(peer);
      if (connection) (void)!::write(connection.get(), text.data(), text.size());
    } else if (::recvfrom(listener_.get(), buffer, sizeof buffer, 0, where, &size) >= 0) {
      std::string text = TextOf(peer);
      ::sendto(listener_.get(), text.data(), text.size(), 0, where, size);
    }
  }
}

std::string Ask(const linux::NetNs& from, int socket_type, const std::string& address, uint16_t port,
                int patience_ms, uint16_t own_port) {
  std::string answer;
  Result<> asked = from.Run([&]() -> Result<> {
    UniqueFd socket(::socket(AF_INET6, socket_type | SOCK_CLOEXEC, 0));
    timeval limit{.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in6 where = AddressOf(address, port), own = AddressOf("::", own_port);
    if (own_port != 0 && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) {
      return ErrnoError("bind");
    }
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) {
      return ErrnoError("connect");
    }
    if (socket_type == SOCK_DGRAM && ::send(socket.get(), "?", 1, 0) != 1) return ErrnoError("send");
    char buffer[64];
    ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (got > 0) answer.assign(buffer, static_cast<size_t>(got));
    return {};
  });
  (void)asked;
  return answer;
}

}  // namespace keelson::cni
