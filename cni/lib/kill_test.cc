// Kills every plugin after each of its steps. DEL, or the end of the container's namespace and GC, must
// clean up what it leaves, and the next ADD must succeed.
//
// A step is a system call that may change something outside of the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>

#include <set>

#include "cni/lib/testing/plugin_fixture.h"
#include "cni/lib/testing/run_until.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

bool IsStep(uint64_t call) {
  static const std::set<uint64_t> kSteps = {SYS_sendmsg, SYS_sendto, SYS_write, SYS_rename,    SYS_unlink,
                                            SYS_openat,  SYS_mkdir,  SYS_setns, SYS_flock,     SYS_clone,
                                            SYS_clone3,  SYS_fork,   SYS_vfork, SYS_exit_group};
  return kSteps.contains(call);
}

struct Link {
  const char* plugin;
  std::string config;
};

class KillTest : public PluginFixture {
 protected:
  // A chain up to and including the plugin to be killed.
  std::vector<Link> Chain(const std::string& last) const {
    std::vector<Link> out = {
        {"bridge",
         Bridge(R"("isDefaultGateway":true,"ipMasq":true,"hairpinMode":true,"macspoofchk":true,)")}};
    const std::string head = R"({"cniVersion":"1.1.0","name":"net","type":")";
    if (last == "portmap") {
      out.push_back({"portmap", head + R"(portmap","runtimeConfig":{"portMappings":[
          {"hostPort":8080,"containerPort":80},{"hostPort":53,"containerPort":53,"protocol":"udp"}]}})"});
    }
    if (last == "bandwidth") {
      out.push_back({"bandwidth", head + R"(bandwidth","ingressRate":8000000,"ingressBurst":800000,
                                           "egressRate":8000000,"egressBurst":800000})"});
    }
    return out;
  }

  // Makes a new host and container.
  void Renew() {
    a_.reset();
    (void)RemoveTree(dir_ + "/ipam");
    host_ = std::make_unique<linux::NetNs>(*linux::NetNs::Make());
    a_ = std::make_unique<Container>("a", dir_);
  }

  std::string AddAll(const std::vector<Link>& chain) {
    std::string result;
    for (const Link& link : chain) {
      std::string config = result.empty() ? link.config : WithPrevious(link.config, result);
      Reply reply = Call(link.plugin, "ADD", *a_, config);
      EXPECT_EQ(reply.exit_code, 0) << link.plugin << ": " << reply.output;
      result = reply.output;
    }
    return result;
  }
  void DeleteAll(const std::vector<Link>& chain) {
    for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
      Reply reply = Call(link->plugin, "DEL", *a_, link->config);
      EXPECT_EQ(reply.exit_code, 0) << link->plugin << ": " << reply.output;
    }
  }
  void CollectAll(const std::vector<Link>& chain) {
    for (const Link& link : chain) {
      Reply reply = Call(link.plugin, "GC", *a_, WithField(link.config, "cni.dev/valid-attachments", "[]"));
      EXPECT_EQ(reply.exit_code, 0) << link.plugin << ": " << reply.output;
    }
  }

  // The interfaces of a namespace except for lo and the bridge.
  std::string Interfaces(const linux::NetNs& netns) const {
    auto routing = Routing(netns);
    std::string out;
    std::vector<netlink::Link> links = *netlink::ListLinks(routing);
    for (const netlink::Link& link : links) {
      if (!link.loopback && link.kind != "bridge") out += link.name + " ";
    }
    return out;
  }
  // What is left of a container, as text; empty: nothing.
  std::string Leftovers() const {
    std::string out = Interfaces(*host_);
    for (auto [family, name] :
         {std::pair(nft::Family::kInet, "keelson-portmap"), std::pair(nft::Family::kBridge, "keelson-cni")}) {
      auto table = Table(family, name);
      if (!table) continue;
      for (const auto& [set, contents] : table->sets) {
        for (const auto& [key, element] : contents.elements) {
          if (!element.comment.empty()) out += set + ":" + element.comment + " ";
        }
      }
    }
    Result<std::vector<std::string>> files = ListDir(Ipam());
    if (!files) return out;
    for (const std::string& file : *files) {
      if (!file.starts_with("last_reserved_ip.") && file != "lock" && file != ".new") out += file + " ";
    }
    return out;
  }
  // The kernel removes a namespace's devices only after the namespace is gone.
  void AwaitNoVeth() {
    auto host = Routing(*host_);
    for (int i = 0; i < 500 && Interfaces(*host_).find("veth") != std::string::npos; ++i) {
      ::poll(nullptr, 0, 10);
    }
  }

  // Kills `command` of the chain's last plugin after every step, and lets `clean` clean up.
  void KillEverywhere(const std::string& plugin, const std::string& command,
                      const std::function<void(const std::vector<Link>&)>& clean) {
    std::vector<Link> chain = Chain(plugin);
    int unclean = 0;
    for (int steps = 0;; ++steps) {
      Renew();
      std::vector<Link> before = chain;
      before.pop_back();
      std::string result = AddAll(command == "ADD" ? before : chain);
      std::string config = chain.back().config;
      if (command == "ADD" && !result.empty()) config = WithPrevious(config, result);
      std::optional<Reply> reply;
      ASSERT_TRUE(host_->Run([&]() -> Result<> {
        reply = RunUntil(steps, std::string(KEELSON_CNI_BIN) + "/" + plugin,
                         {"CNI_COMMAND=" + command, "CNI_CONTAINERID=a", "CNI_NETNS=" + a_->path,
                          "CNI_IFNAME=eth0", std::string("CNI_PATH=") + KEELSON_CNI_BIN},
                         config, {.is_step = IsStep});
        return {};
      }));
      if (reply) {
        EXPECT_EQ(reply->exit_code, 0) << reply->output;
      }
      if (!reply && !Leftovers().empty()) ++unclean;
      clean(chain);
      EXPECT_EQ(Leftovers(), "") << plugin << " " << command << " after " << steps << " steps";
      if (a_) {
        EXPECT_EQ(Interfaces(a_->netns), "");
        AddAll(chain);
        DeleteAll(chain);
        EXPECT_EQ(Leftovers(), "");
      }
      if (reply) {
        EXPECT_GT(unclean, 2);  // some kills did leave unfinished work
        return;
      }
      if (HasFailure()) return;
    }
  }
  std::function<void(const std::vector<Link>&)> ByDel() {
    return [this](const std::vector<Link>& chain) { DeleteAll(chain); };
  }
  std::function<void(const std::vector<Link>&)> ByGc() {
    return [this](const std::vector<Link>& chain) {
      auto gone = std::move(a_);
      gone.reset();
      a_ = std::make_unique<Container>("a", dir_);
      AwaitNoVeth();
      CollectAll(chain);
    };
  }
};

TEST_F(KillTest, BridgeAddThenDel) { KillEverywhere("bridge", "ADD", ByDel()); }
TEST_F(KillTest, BridgeAddThenGc) { KillEverywhere("bridge", "ADD", ByGc()); }
TEST_F(KillTest, BridgeDelThenDel) { KillEverywhere("bridge", "DEL", ByDel()); }
TEST_F(KillTest, PortmapAddThenDel) { KillEverywhere("portmap", "ADD", ByDel()); }
TEST_F(KillTest, PortmapAddThenGc) { KillEverywhere("portmap", "ADD", ByGc()); }
TEST_F(KillTest, PortmapDelThenDel) { KillEverywhere("portmap", "DEL", ByDel()); }
TEST_F(KillTest, BandwidthAddThenDel) { KillEverywhere("bandwidth", "ADD", ByDel()); }
TEST_F(KillTest, BandwidthAddThenGc) { KillEverywhere("bandwidth", "ADD", ByGc()); }
TEST_F(KillTest, BandwidthDelThenDel) { KillEverywhere("bandwidth", "DEL", ByDel()); }

}  // namespace
}  // namespace keelson::cni
