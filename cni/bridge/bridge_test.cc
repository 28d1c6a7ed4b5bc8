// Drives the built plugins as a container runtime does, in network namespaces of its own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "cni/lib/json.h"
#include "cni/lib/plugin.h"
#include "lib/base/file.h"
#include "lib/linux/netns.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

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
  return {WEXITSTATUS(status), *ReadAll(out.get(), "memory")};
}

struct Container {
  Container(const std::string& name, const std::string& dir)
      : id(name), path(dir + "/" + name), netns(*linux::NetNs::Make()) {
    EXPECT_TRUE(netns.BindTo(path));
  }
  ~Container() { (void)linux::RemoveNetNs(path); }
  std::string id, path;
  linux::NetNs netns;
};

class BridgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto host = linux::NetNs::Make();
    if (!host) GTEST_SKIP() << host.error().message();
    host_ = std::make_unique<linux::NetNs>(std::move(*host));
    char pattern[] = "/tmp/keelson-cni-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    a_ = std::make_unique<Container>("a", dir_);
    b_ = std::make_unique<Container>("b", dir_);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    if (!dir_.empty()) (void)RemoveTree(dir_);
  }

  std::string Config(const std::string& more) const {
    return R"({"cniVersion":"1.0.0","name":"net","type":"bridge","bridge":"br0",)" + more +
           R"("ipam":{"type":"host-local","dataDir":")" + dir_ +
           R"(/ipam","ranges":[[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]]}})";
  }
  Reply Call(const std::string& plugin, const std::string& command, const Container& c,
             const std::string& config) {
    Reply reply;
    EXPECT_TRUE(host_->Run([&]() -> Result<> {
      reply = Execute(std::string(KEELSON_CNI_BIN) + "/" + plugin,
                      {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + c.id, "CNI_NETNS=" + c.path,
                       "CNI_IFNAME=eth0", std::string("CNI_PATH=") + KEELSON_CNI_BIN},
                      config);
      return {};
    }));
    return reply;
  }
  // One ping's worth: a TCP connection from one namespace to an address of another.
  static bool Reaches(const linux::NetNs& from, const linux::NetNs& to, const std::string& address);

  std::unique_ptr<linux::NetNs> host_;
  std::string dir_;
  std::unique_ptr<Container> a_, b_;
};

constexpr char kGateway[] = R"("isDefaultGateway":true,"hairpinMode":true,"ipMasq":true,"mtu":1400,)";

TEST_F(BridgeTest, AddJoinsContainersAndDelTakesThemOut) {
  Reply added = Call("bridge", "ADD", *a_, Config(kGateway));
  ASSERT_EQ(added.exit_code, 0) << added.output;
  auto json = ParseJson(added.output, "result");
  ASSERT_TRUE(json);
  auto result = ParseResult(*json);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->interfaces.size(), 3u);
  EXPECT_EQ(result->interfaces[0].name, "br0");
  EXPECT_EQ(result->interfaces[2].sandbox, a_->path);
  EXPECT_EQ(result->interfaces[2].mac, "0a:58:0a:07:00:02");
  EXPECT_EQ(result->ips[0].address.ToString(), "10.7.0.2/24");
  EXPECT_EQ(result->ips[1].address.ToString(), "fd07::2/64");
  EXPECT_EQ(result->ips[0].interface, 2);
  EXPECT_EQ(result->routes.size(), 2u);

  auto host = *netlink::Socket::OpenIn(*host_);
  auto bridge = *netlink::GetLink(host, "br0");
  EXPECT_TRUE(bridge.up);
  EXPECT_EQ(bridge.mtu, 1400);
  EXPECT_EQ(bridge.mac.ToString(), result->interfaces[0].mac);
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  auto eth0 = *netlink::GetLink(inside, "eth0");
  EXPECT_TRUE(eth0.up);
  EXPECT_EQ(eth0.mtu, 1400);
  EXPECT_EQ(netlink::GetLink(host, result->interfaces[1].name)->master, bridge.index);
  std::string forwarding, forwarding6;
  ASSERT_TRUE(host_->Run([&]() -> Result<> {
    ASSIGN_OR_RETURN(forwarding, linux::ReadSysctl("net/ipv4/ip_forward"));
    ASSIGN_OR_RETURN(forwarding6, linux::ReadSysctl("net/ipv6/conf/all/forwarding"));
    return {};
  }));
  EXPECT_EQ(forwarding + forwarding6, "11");
  auto kernel = *nft::OpenKernel(*host_);
  auto table = *kernel->Read({nft::Family::kInet, "keelson-cni"});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->chains.size(), 2u);

  std::string check = Config(kGateway);
  check.insert(check.size() - 1, ",\"prevResult\":" + added.output);
  Reply checked = Call("bridge", "CHECK", *a_, check);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  ASSERT_EQ(Call("bridge", "ADD", *b_, Config(kGateway)).exit_code, 0);
  EXPECT_TRUE(Reaches(a_->netns, b_->netns, "10.7.0.3"));
  EXPECT_TRUE(Reaches(b_->netns, a_->netns, "fd07::2"));
  EXPECT_TRUE(Reaches(*host_, a_->netns, "10.7.0.2"));

  EXPECT_EQ(Call("bridge", "DEL", *a_, Config(kGateway)).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", *a_, Config(kGateway)).exit_code, 0);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_FALSE(netlink::GetLink(host, result->interfaces[1].name));
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.2"));
  EXPECT_EQ(Call("bridge", "CHECK", *a_, check).exit_code, 1);
  ASSERT_TRUE(linux::RemoveNetNs(b_->path));
  EXPECT_EQ(Call("bridge", "DEL", *b_, Config(kGateway)).exit_code, 0);
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.3"));
}

TEST_F(BridgeTest, AFailedAddLeavesNothing) {
  auto host = *netlink::Socket::OpenIn(*host_);
  ASSERT_TRUE(netlink::CreateBridge(host, "br0", 0, std::nullopt));
  auto bridge = *netlink::GetLink(host, "br0");
  ASSERT_TRUE(netlink::AddAddress(host, bridge.index, *IpPrefix::Parse("192.168.9.1/24")));
  Reply refused = Call("bridge", "ADD", *a_, Config(kGateway));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("already has an IP address different from 10.7.0.1/24"));
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  EXPECT_FALSE(netlink::GetLink(inside, "eth0"));
  EXPECT_FALSE(PathExists(dir_ + "/ipam/net/10.7.0.2"));

  Reply forced = Call("bridge", "ADD", *a_, Config(std::string(kGateway) + R"("forceAddress":true,)"));
  EXPECT_EQ(forced.exit_code, 0) << forced.output;
  Reply twice = Call("bridge", "ADD", *a_, Config(kGateway));
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.output, HasSubstr("already"));
  EXPECT_TRUE(netlink::GetLink(inside, "eth0"));
  EXPECT_TRUE(PathExists(dir_ + "/ipam/net/10.7.0.3"));
}

TEST_F(BridgeTest, RefusesWhatItCannotKeep) {
  Reply vlan = Call("bridge", "ADD", *a_, Config(R"("vlan":7,)"));
  EXPECT_THAT(vlan.output, HasSubstr(R"("code":2)"));
  Reply both = Call("bridge", "ADD", *a_, Config(R"("promiscMode":true,"hairpinMode":true,)"));
  EXPECT_THAT(both.output, HasSubstr(R"("code":7)"));
}

TEST_F(BridgeTest, LoopbackComesUp) {
  std::string config = R"({"cniVersion":"1.0.0","name":"lo","type":"loopback"})";
  Reply added = Call("loopback", "ADD", *a_, config);
  ASSERT_EQ(added.exit_code, 0) << added.output;
  EXPECT_THAT(added.output, HasSubstr("127.0.0.1/8"));
  auto inside = *netlink::Socket::OpenIn(a_->netns);
  EXPECT_TRUE(netlink::GetLink(inside, "lo")->up);
  EXPECT_EQ(Call("loopback", "DEL", *a_, config).exit_code, 0);
  EXPECT_FALSE(netlink::GetLink(inside, "lo")->up);
}

bool BridgeTest::Reaches(const linux::NetNs& from, const linux::NetNs& to, const std::string& address) {
  auto target = *IpAddress::Parse(address);
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  sockaddr* where = target.is_v4() ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  socklen_t size = target.is_v4() ? sizeof v4 : sizeof v6;
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  std::memcpy(target.is_v4() ? static_cast<void*>(&v4.sin_addr) : static_cast<void*>(&v6.sin6_addr),
              target.bytes().data(), target.bytes().size());
  int family = target.is_v4() ? AF_INET : AF_INET6;
  UniqueFd listener;
  auto listening = to.Run([&]() -> Result<> {
    listener.Reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), where, size) != 0) return ErrnoError("bind");
    if (::listen(listener.get(), 1) != 0) return ErrnoError("listen");
    ::getsockname(listener.get(), where, &size);
    return {};
  });
  auto connected = from.Run([&]() -> Result<> {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    timeval limit{.tv_sec = 3, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(socket.get(), where, size) != 0) return ErrnoError("connect");
    return {};
  });
  if (!connected) ADD_FAILURE() << connected.error().message();
  return listening && connected;
}

}  // namespace
}  // namespace keelson::cni
