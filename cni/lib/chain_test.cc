// All plugins as one conflist, run like a runtime does: each gets the previous result and the runtime's
// capability arguments, in every version of the specification.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "cni/lib/json.h"
#include "cni/lib/testing/plugin_fixture.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

class ChainTest : public PluginFixture {
 protected:
  struct Plugin {
    std::string name, config;
  };
  std::vector<Plugin> Chain(const std::string& version, int host_port) const {
    auto config = [&](const std::string& name, const std::string& fields) {
      return Plugin{
          name, R"({"cniVersion":")" + version + R"(","name":"net","type":")" + name + "\"," + fields + "}"};
    };
    return {
        config("loopback", R"("x":1)"),
        config("bridge", R"("bridge":"br0","isDefaultGateway":true,"ipMasq":true,"hairpinMode":true,
                                "macspoofchk":true,"ipam":)" +
                             HostLocal(R"([[{"subnet":"10.7.0.0/24"}],[{"subnet":"fd07::/64"}]])")),
        config("portmap", R"("runtimeConfig":{"portMappings":[{"hostPort":)" + std::to_string(host_port) +
                              R"(,"containerPort":80}]})"),
        config("bandwidth", R"("runtimeConfig":{"bandwidth":{"ingressRate":800000000,"ingressBurst":80000000,
                                   "egressRate":800000000,"egressBurst":80000000}})")};
  }
  // The first plugin is for lo and stands alone.
  std::string Add(const std::vector<Plugin>& chain, const Container& c) {
    std::string result;
    for (const Plugin& plugin : chain) {
      Reply reply =
          Call(plugin.name, "ADD", c, result.empty() ? plugin.config : WithPrevious(plugin.config, result));
      EXPECT_EQ(reply.exit_code, 0) << plugin.name << ": " << reply.output;
      if (plugin.name != "loopback") result = reply.output;
    }
    return result;
  }
  void Run(const char* command, std::vector<Plugin> chain, const Container& c, const std::string& field,
           const std::string& json, int exit_code) {
    if (std::string(command) == "DEL") std::reverse(chain.begin(), chain.end());
    for (const Plugin& plugin : chain) {
      std::string config = field.empty() ? plugin.config : WithField(plugin.config, field, json);
      Reply reply = Call(plugin.name, command, c, config);
      EXPECT_EQ(reply.exit_code, exit_code) << command << " " << plugin.name << ": " << reply.output;
      if (exit_code == 0) continue;
      EXPECT_THAT(reply.output, HasSubstr(R"("code":1,)"));
    }
  }
  size_t Elements() const {
    size_t out = 0;
    auto mapped = Table(nft::Family::kInet, "keelson-portmap"),
         senders = Table(nft::Family::kBridge, "keelson-cni");
    for (const auto& table : {mapped, senders}) {
      if (!table) continue;
      for (const auto& [name, contents] : table->sets) {
        if (name != "near") out += contents.elements.size();
      }
    }
    return out;
  }
};

TEST_F(ChainTest, EveryVersionAndVerb) {
  for (const std::string version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}) {
    SCOPED_TRACE(version);
    auto chain = Chain(version, 8080);
    std::string result = Add(chain, *a_);
    auto json = ParseJson(result, "result");
    ASSERT_TRUE(json);
    EXPECT_EQ(json->at("cniVersion").as_string(), version);
    AddResult parsed = Parse({0, result});
    ASSERT_EQ(parsed.interfaces.size(), 4u);  // bridge, port, eth0, ifb
    EXPECT_EQ(parsed.ips.size(), 2u);
    {
      EchoServer server(a_->netns, SOCK_STREAM, 80);
      EXPECT_EQ(Ask(*host_, SOCK_STREAM, "127.0.0.1", 8080), "10.7.0.1");
    }
    Run("CHECK", chain, *a_, "prevResult", result, version >= "0.4.0" ? 0 : 1);
    Run("STATUS", chain, *a_, "", "", version >= "1.1.0" ? 0 : 1);
    Run("GC", chain, *a_, "cni.dev/valid-attachments", R"([{"containerID":"a","ifname":"eth0"}])",
        version >= "1.1.0" ? 0 : 1);
    if (version >= "0.4.0") Run("CHECK", chain, *a_, "prevResult", result, 0);
    Run("DEL", chain, *a_, "prevResult", result, 0);
    Run("DEL", chain, *a_, "", "", 0);
    EXPECT_EQ(Elements(), 0u);
    auto host = Routing(*host_), inside = Routing(a_->netns);
    EXPECT_EQ(netlink::ListLinks(host)->size(), 2u);    // lo and the bridge
    EXPECT_EQ(netlink::ListLinks(inside)->size(), 1u);  // lo
  }
}

TEST_F(ChainTest, ManyAtOnceOnAFreshHost) {
  std::vector<std::unique_ptr<Container>> containers;
  for (int i = 0; i < 8; ++i) {
    containers.push_back(std::make_unique<Container>("c" + std::to_string(i), dir_));
  }
  auto all_at_once = [&](const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  };
  for (int round = 0; round < 2; ++round) {
    all_at_once([&](int i) { Add(Chain("1.1.0", 8000 + i), *containers[static_cast<size_t>(i)]); });
    EXPECT_EQ(Elements(), 8u * 4u);  // a port of two families, a MAC address and its port
    EXPECT_EQ(Table(nft::Family::kInet, "keelson-cni")->chains.size(), 2u);
    all_at_once(
        [&](int i) { Run("DEL", Chain("1.1.0", 8000 + i), *containers[static_cast<size_t>(i)], "", "", 0); });
    EXPECT_EQ(Elements(), 0u);
    std::vector<std::string> names = *ListDir(Ipam());
    for (const std::string& name : names) {
      EXPECT_TRUE(name == "lock" || name.starts_with("last_reserved_ip.")) << name;
    }
  }
}

}  // namespace
}  // namespace keelson::cni
