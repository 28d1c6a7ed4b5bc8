// Host ports as a runtime requests them, with real traffic from all sides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "cni/lib/testing/plugin_fixture.h"
#include "lib/linux/sysctl.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

class PortmapTest : public PluginFixture {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    if (IsSkipped()) return;
    outside_ = Outside();
    // Where bridged packets pass netfilter, hairpin connections need a port that sends back what it
    // received.
    joined_a_ = Join(*a_, R"("isDefaultGateway":true,"hairpinMode":true,)");
  }
  static std::string Config(const std::string& mappings, const std::string& more = "") {
    return R"({"cniVersion":"1.1.0","name":"net","type":"portmap",)" + more +
           R"("runtimeConfig":{"portMappings":[)" + mappings + "]}}";
  }
  Reply Add(const Container& c, const std::string& joined, const std::string& mappings,
            const std::string& more = "") {
    Reply reply = Call("portmap", "ADD", c, WithPrevious(Config(mappings, more), joined));
    EXPECT_EQ(reply.exit_code, 0) << reply.output;
    return reply;
  }
  size_t Mapped() const {
    size_t out = 0;
    auto table = Table(nft::Family::kInet, "keelson-portmap");
    if (!table) return out;
    for (const auto& [name, contents] : table->sets) {
      if (name != "near") out += contents.elements.size();
    }
    return out;
  }
  std::unique_ptr<linux::NetNs> outside_;
  std::string joined_a_;
};

constexpr char kWeb[] = R"({"hostPort":8080,"containerPort":80,"protocol":"tcp"})";
constexpr char kDns[] = R"({"hostPort":5300,"containerPort":53,"protocol":"udp"})";

TEST_F(PortmapTest, TcpFromEverywhere) {
  std::string joined_b = Join(*b_);
  Reply added = Add(*a_, joined_a_, kWeb);
  EXPECT_EQ(added.output, joined_a_);  // the previous result passes through
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "192.0.2.2");  // its own address, seen as it is
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "127.0.0.1", 8080), "10.7.0.1");
  EXPECT_NE(Ask(*host_, SOCK_STREAM, "192.0.2.1", 8080), "");
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "fd07::1", 8080), "fd07::1");
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "192.0.2.1", 8080), "10.7.0.1");
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "fd07::1", 8080), "fd07::1");
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, "10.7.0.1", 8080), "10.7.0.1");  // hairpin
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, "fd07::1", 8080), "fd07::1");
  // Addresses of other hosts are not mapped.
  EchoServer elsewhere(*outside_, SOCK_STREAM, 8080);
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "192.0.2.2", 8080), "192.0.2.1");

  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(kWeb)).exit_code, 0);
  EXPECT_EQ(Mapped(), 0u);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "");
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(kWeb)).exit_code, 0);
}

TEST_F(PortmapTest, HairpinAlsoWithoutBridgeNetfilter) {
  (void)host_->Run([] { return linux::WriteSysctl("net/bridge/bridge-nf-call-iptables", "0"); });
  (void)host_->Run([] { return linux::WriteSysctl("net/bridge/bridge-nf-call-ip6tables", "0"); });
  std::string joined_b = Join(*b_);
  Add(*a_, joined_a_, kWeb);
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, "192.0.2.1", 8080), "10.7.0.1");
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "192.0.2.1", 8080), "10.7.0.1");
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "fd07::1", 8080), "fd07::1");
}

TEST_F(PortmapTest, UdpSendersFollowTheMapping) {
  std::string joined_b = Join(*b_);
  EchoServer in_a(a_->netns, SOCK_DGRAM, 53), in_b(b_->netns, SOCK_DGRAM, 53);
  // Before the mapping, so conntrack remembers that these packets were not translated.
  EXPECT_EQ(Ask(*outside_, SOCK_DGRAM, "192.0.2.1", 5300, 100, 40000), "");
  Add(*a_, joined_a_, kDns);
  EXPECT_EQ(Ask(*outside_, SOCK_DGRAM, "192.0.2.1", 5300, 3000, 40000), "192.0.2.2");
  EXPECT_EQ(Ask(*host_, SOCK_DGRAM, "127.0.0.1", 5300), "10.7.0.1");
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(kDns)).exit_code, 0);
  EXPECT_EQ(Ask(*outside_, SOCK_DGRAM, "192.0.2.1", 5300, 100, 40000), "");
  Add(*b_, joined_b, kDns);
  EXPECT_EQ(Ask(*outside_, SOCK_DGRAM, "192.0.2.1", 5300, 3000, 40000), "192.0.2.2");
}

TEST_F(PortmapTest, AHostAddressNarrowsTheMapping) {
  Add(*a_, joined_a_, R"({"hostPort":8080,"containerPort":80,"hostIP":"192.0.2.1"},
                         {"hostPort":8081,"containerPort":80,"hostIP":"0.0.0.0"},
                         {"hostPort":8082,"containerPort":80,"hostIP":"127.0.0.1"},
                         {"hostPort":38412,"containerPort":38412,"protocol":"sctp"})");
  EXPECT_EQ(Mapped(), 5u);  // the last one is of both families
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "192.0.2.2");
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "10.7.0.1", 8080), "");
  EXPECT_NE(Ask(*host_, SOCK_STREAM, "10.7.0.1", 8081), "");
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "fd07::1", 8081), "");
  EXPECT_NE(Ask(*host_, SOCK_STREAM, "127.0.0.1", 8082), "");
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8082), "");
}

TEST_F(PortmapTest, ConditionsHold) {
  Add(*a_, joined_a_, kWeb, R"("conditionsV4":["!","-s","192.0.2.0/24"],)");
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "");
  EXPECT_NE(Ask(*host_, SOCK_STREAM, "10.7.0.1", 8080), "");
  Add(*a_, joined_a_, R"({"hostPort":8081,"containerPort":80})", R"("conditionsV4":["iifname","uplink"],)");
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8081), "192.0.2.2");
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "10.7.0.1", 8081), "");
  // Mappings made with other settings are removed all the same.
  EXPECT_EQ(Call("portmap", "DEL", *a_, R"({"cniVersion":"1.1.0","name":"net","type":"portmap"})").exit_code,
            0);
  EXPECT_EQ(Mapped(), 0u);
}

TEST_F(PortmapTest, MasqueradingIsAChoice) {
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  Add(*a_, joined_a_, kWeb, R"("snat":false,)");
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "192.0.2.2");
  EXPECT_EQ(Ask(*host_, SOCK_STREAM, "127.0.0.1", 8080, 300), "");
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(kWeb)).exit_code, 0);
  Add(*a_, joined_a_, kWeb, R"("masqAll":true,"markMasqBit":7,)");
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "10.7.0.1");
}

TEST_F(PortmapTest, TheLastOneGetsThePortAndKeepsIt) {
  std::string joined_b = Join(*b_);
  EchoServer server(b_->netns, SOCK_STREAM, 80);
  Add(*a_, joined_a_, kWeb);
  Add(*b_, joined_b, kWeb);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "192.0.2.2");
  Reply replaced = Call("portmap", "CHECK", *a_, WithPrevious(Config(kWeb), joined_a_));
  EXPECT_THAT(replaced.output, HasSubstr("host port 8080 is not mapped to 10.7.0.2"));
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(kWeb)).exit_code, 0);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 8080), "192.0.2.2");
  EXPECT_EQ(Call("portmap", "CHECK", *b_, WithPrevious(Config(kWeb), joined_b)).exit_code, 0);
  Add(*b_, joined_b, kWeb);  // again, as after a crash of the runtime
  EXPECT_EQ(Mapped(), 2u);
}

TEST_F(PortmapTest, ChecksRepairsAndCollects) {
  std::string joined_b = Join(*b_);
  Add(*a_, joined_a_, kWeb);
  Add(*b_, joined_b, kDns);
  std::string check = WithPrevious(Config(kWeb), joined_a_);
  EXPECT_EQ(Call("portmap", "CHECK", *a_, check).exit_code, 0);
  auto gc = [&](const char* name, const char* valid) {
    std::string config = R"({"cniVersion":"1.1.0","name":")" + std::string(name) + R"(","type":"portmap"})";
    Reply reply = Call("portmap", "GC", *a_, WithField(config, "cni.dev/valid-attachments", valid));
    EXPECT_EQ(reply.exit_code, 0) << reply.output;
  };
  gc("other", "[]");
  EXPECT_EQ(Mapped(), 4u);
  gc("net", R"([{"containerID":"a","ifname":"eth0"}])");
  EXPECT_EQ(Mapped(), 2u);
  EXPECT_EQ(Call("portmap", "CHECK", *a_, check).exit_code, 0);
  auto kernel = *nft::OpenKernel(*host_);
  nft::Transaction flush({nft::Family::kInet, "keelson-portmap"});
  flush.DeleteTable();
  ASSERT_TRUE(kernel->Apply(flush));
  EXPECT_THAT(Call("portmap", "CHECK", *a_, check).output, HasSubstr(R"("code":100)"));
  Add(*a_, joined_a_, kWeb);
  EXPECT_EQ(Call("portmap", "CHECK", *a_, check).exit_code, 0);
}

TEST_F(PortmapTest, WithoutMappingsNothingIsTouched) {
  Reply alone = Call("portmap", "ADD", *a_, Config(kWeb));
  EXPECT_THAT(alone.output, HasSubstr("must be called as chained plugin"));
  EXPECT_THAT(alone.output, HasSubstr(R"("code":7)"));
  EXPECT_EQ(Add(*a_, joined_a_, "").output, joined_a_);
  EXPECT_EQ(Call("portmap", "CHECK", *a_, WithPrevious(Config(""), joined_a_)).exit_code, 0);
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config("")).exit_code, 0);
  EXPECT_EQ(Call("portmap", "STATUS", *a_, Config("")).exit_code, 0);
  EXPECT_FALSE(Table(nft::Family::kInet, "keelson-portmap"));
}

TEST_F(PortmapTest, ManyPortsCostOneLookup) {
  std::string mappings;
  for (int i = 0; i < 1000; ++i) {
    mappings += (i ? "," : "") + std::string(R"({"hostPort":)") + std::to_string(20000 + i) +
                R"(,"containerPort":80})";
  }
  Add(*a_, joined_a_, mappings);
  EXPECT_EQ(Mapped(), 2000u);
  EXPECT_LE(Table(nft::Family::kInet, "keelson-portmap")->chains["hostports"].rules.size(), 9u);
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_EQ(Ask(*outside_, SOCK_STREAM, "192.0.2.1", 20999), "192.0.2.2");
  EXPECT_EQ(Call("portmap", "DEL", *a_, Config(mappings)).exit_code, 0);
  EXPECT_EQ(Mapped(), 0u);
}

}  // namespace
}  // namespace keelson::cni
