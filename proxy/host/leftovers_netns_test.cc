// Rules as upstream's kube-proxy leaves them, written by the real programs into network namespaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "lib/base/file.h"
#include "lib/linux/netns.h"
#include "lib/netlink/link.h"
#include "proxy/host/leftovers.h"
#include "proxy/services.h"

namespace keelson::proxy {
namespace {

using ::testing::HasSubstr;

// What others have: Docker, an administrator, the kubelet. {NET} and {IP} differ between the families.
constexpr char kOthers[] = R"(*mangle
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT -d {NET} -p tcp -m comment --comment "goes to -j KUBE-SERVICES one day" -j RETURN
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -p tcp -m tcp --dport 22 -m conntrack --ctstate NEW -j ACCEPT
-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP
COMMIT
)";

constexpr char kProxy[] = R"(*mangle
:KUBE-PROXY-CANARY - [0:0]
COMMIT
*nat
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SVC-NPX46M4PTMTKRN6Y - [0:0]
:KUBE-EXT-NPX46M4PTMTKRN6Y - [0:0]
:KUBE-SEP-62K7QLOHBDUDQSIT - [0:0]
:KUBE-SEP-F3WXRHAJRMPXVJZM - [0:0]
-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-I POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-SERVICES -d {IP} -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-NODEPORTS -p tcp -m tcp --dport 30443 -j KUBE-EXT-NPX46M4PTMTKRN6Y
-A KUBE-EXT-NPX46M4PTMTKRN6Y -j KUBE-MARK-MASQ
-A KUBE-EXT-NPX46M4PTMTKRN6Y -j KUBE-SVC-NPX46M4PTMTKRN6Y
-A KUBE-SVC-NPX46M4PTMTKRN6Y -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-62K7QLOHBDUDQSIT
-A KUBE-SVC-NPX46M4PTMTKRN6Y -j KUBE-SEP-F3WXRHAJRMPXVJZM
-A KUBE-SEP-62K7QLOHBDUDQSIT -s {IP} -j KUBE-MARK-MASQ
-A KUBE-SEP-62K7QLOHBDUDQSIT -p tcp -m tcp -j DNAT --to-destination {TO}
-A KUBE-SEP-F3WXRHAJRMPXVJZM -p tcp -m tcp -j DNAT --to-destination {TO}
COMMIT
*filter
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-I INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-I OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-SERVICES -d {IP} -p udp -m comment --comment "no endpoints" -m udp --dport 53 -j REJECT
COMMIT
)";

std::string ForFamily(std::string script, bool v4) {
  for (auto [name, value] : {std::pair("{NET}", v4 ? "10.0.0.0/8" : "fd00::/8"),
                             std::pair("{IP}", v4 ? "10.96.0.1/32" : "fd96::1/128"),
                             std::pair("{TO}", v4 ? "10.1.0.1:6443" : "[fd01::1]:6443")}) {
    for (size_t at; (at = script.find(name)) != std::string::npos;) {
      script.replace(at, std::string_view(name).size(), value);
    }
  }
  return script;
}

// What a command prints; its failure is the test's.
std::string Output(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  for (size_t got; (got = ::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    out.append(buffer.data(), got);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command << ": " << out;
  return out;
}

bool Installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

struct Tool {
  const char* name;  // "iptables-nft"
  bool v4, legacy;
};

class LeftoversTest : public ::testing::TestWithParam<Tool> {
 protected:
  void Restore(const char* script) const {
    std::string file = ::testing::TempDir() + "/leftovers-" + GetParam().name + std::to_string(::getpid());
    ASSERT_TRUE(WriteFileAtomic(file, ForFamily(script, GetParam().v4)));
    Output(std::string(GetParam().name) + "-restore --noflush <" + file);
    ::unlink(file.c_str());
  }
  // Tables, chains and rules; comments and counters say nothing here.
  static std::string Saved() {
    return Output(std::string(GetParam().name) + "-save | grep -v '^#' | sed 's/ \\[.*//'");
  }
};

TEST_P(LeftoversTest, WhatIptablesModeLeftGoesAndOthersStay) {
  const Tool tool = GetParam();
  if (!Installed(tool.name)) GTEST_SKIP() << tool.name << " is not installed";
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto done = netns->Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
    KEELSON_RETURN_IF_ERROR(RemoveLeftovers(*kernel, "keelson-proxy"));  // of nothing
    Restore(kOthers);
    const std::string before = Saved();
    EXPECT_THAT(before, HasSubstr("KUBE-FIREWALL"));
    KEELSON_RETURN_IF_ERROR(RemoveLeftovers(*kernel, "keelson-proxy"));
    EXPECT_EQ(Saved(), before);
    Restore(kProxy);
    EXPECT_THAT(Saved(), HasSubstr("KUBE-SEP-"));
    KEELSON_RETURN_IF_ERROR(RemoveLeftovers(*kernel, "keelson-proxy"));
    EXPECT_EQ(Saved(), before);
    KEELSON_RETURN_IF_ERROR(RemoveLeftovers(*kernel, "keelson-proxy"));
    EXPECT_EQ(Saved(), before);
    return {};
  });
  EXPECT_TRUE(done) << done.error().message();
}

// Upstream's kube-proxy brings its programs in its image: the node itself need not have any.
TEST_P(LeftoversTest, RulesOfIptablesNftGoWithoutItsPrograms) {
  const Tool tool = GetParam();
  if (tool.legacy) return;
  if (!Installed(tool.name)) GTEST_SKIP() << tool.name << " is not installed";
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto done = netns->Run([&]() -> Result<> {
    Restore(kOthers);
    const std::string before = Saved();
    Restore(kProxy);
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", "/nowhere", 1);
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
    Result<> removed = RemoveLeftovers(*kernel, "keelson-proxy");
    ::setenv("PATH", path.c_str(), 1);
    EXPECT_EQ(Saved(), before);
    return removed;
  });
  EXPECT_TRUE(done) << done.error().message();
}

INSTANTIATE_TEST_SUITE_P(Programs, LeftoversTest,
                         ::testing::Values(Tool{"iptables-nft", true, false},
                                           Tool{"ip6tables-nft", false, false},
                                           Tool{"iptables-legacy", true, true},
                                           Tool{"ip6tables-legacy", false, true}),
                         [](const auto& of) {
                           std::string name = of.param.name;
                           return name.replace(name.find('-'), 1, "_");
                         });

TEST(Leftovers, TablesOfModeNftablesGo) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto kernel = nft::OpenKernel(*netns);
  ASSERT_TRUE(kernel) << kernel.error().message();
  for (nft::Family family : {nft::Family::kIpv4, nft::Family::kIpv6}) {
    for (const char* table : {"kube-proxy", "keelson-proxy"}) {
      nft::Transaction make({family, table});
      make.AddTable();
      make.AddChain({.name = "services"});
      ASSERT_TRUE((*kernel)->Apply(make));
    }
  }
  auto has = [&](const char* table) { return *(*kernel)->HasChain({nft::Family::kIpv6, table}, "services"); };
  auto remove = [&](const char* own) {
    auto done = netns->Run([&] { return RemoveLeftovers(**kernel, own); });
    EXPECT_TRUE(done) << done.error().message();
  };
  remove("kube-proxy");  // then it is ours
  EXPECT_TRUE(has("kube-proxy"));
  remove("keelson-proxy");
  EXPECT_FALSE(has("kube-proxy"));
  EXPECT_TRUE(has("keelson-proxy"));
}

// What every mode has, with cluster DNS: of the node's network nothing is left.
TEST(Cleanup, LeavesNothing) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto done = netns->Run([]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> before, netlink::ListLinks(socket));
    const Config config{.table = "own-table", .ebpf_pins = ::testing::TempDir() + "/no-pins"};
    const std::vector<std::string> tables = {"own-table", "own-table-ipvs", "own-table-ebpf", "others"};
    for (nft::Family family : {nft::Family::kIpv4, nft::Family::kIpv6}) {
      for (const std::string& table : tables) {
        nft::Transaction make({family, table});
        make.AddTable();
        make.AddChain({.name = "services"});
        KEELSON_RETURN_IF_ERROR(kernel->Apply(make));
      }
    }
    for (const char* link : {"kube-dns0", "kube-ipvs0"}) {
      KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(socket, link, 0, std::nullopt));
    }
    for (int times = 0; times < 2; ++times) {  // nothing is wrong with a clean node
      KEELSON_RETURN_IF_ERROR(Cleanup(config));
      for (nft::Family family : {nft::Family::kIpv4, nft::Family::kIpv6}) {
        for (const std::string& table : tables) {
          Result<bool> there = kernel->HasChain({family, table}, "services");
          EXPECT_EQ(there.value_or(false), table == "others") << table;
        }
      }
      KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> after, netlink::ListLinks(socket));
      EXPECT_EQ(after.size(), before.size());
    }
    return {};
  });
  EXPECT_TRUE(done) << done.error().message();
}

// Needs a kernel with IPVS, and ipvsadm and ipset: the VM of tests/vm.
TEST(Leftovers, VirtualServersSetsAndDeviceOfModeIpvsGo) {
  auto netns = linux::NetNs::Make();
  if (!netns) GTEST_SKIP() << netns.error().message();
  auto done = netns->Run([]() -> Result<> {
    if (!ReadFile("/proc/thread-self/net/ip_vs")) {
      return Error(Code::kUnimplemented, "this kernel has no IPVS");
    }
    for (const char* program : {"ipvsadm", "ipset"}) {
      if (!Installed(program)) return Error(Code::kUnimplemented, std::string(program) + " is not installed");
    }
    Output("ip link add kube-ipvs0 type dummy");
    Output("ip addr add 10.96.0.1/32 dev kube-ipvs0");
    Output("ipvsadm -A -t 10.96.0.1:443 -s rr && ipvsadm -a -t 10.96.0.1:443 -r 10.1.0.1:6443 -m");
    Output("ipset create KUBE-CLUSTER-IP hash:ip,port && ipset create OTHERS hash:ip");
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
    KEELSON_RETURN_IF_ERROR(RemoveLeftovers(*kernel, "keelson-proxy"));
    EXPECT_EQ(Output("ipset list -name"), "OTHERS\n");
    EXPECT_NE(Output("ipvsadm -S -n"), "");  // a dataplane takes them over, or lets them drain
    KEELSON_RETURN_IF_ERROR(RemoveVirtualServers());
    EXPECT_EQ(Output("ipvsadm -S -n"), "");
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
    EXPECT_FALSE(netlink::GetLink(socket, "kube-ipvs0"));
    return {};
  });
  if (!done && done.error().Is(Code::kUnimplemented)) GTEST_SKIP() << done.error().message();
  EXPECT_TRUE(done) << done.error().message();
}

}  // namespace
}  // namespace keelson::proxy
