// Random Services through the kernel, held to the model; and connections that outlive proxies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "lib/netlink/conntrack.h"
#include "proxy/model/service_map.h"
#include "tests/netns/service_world.h"

namespace keelson::netns {
namespace {

using proxy::Decision;
using proxy::Fate;

constexpr const char* kClients[] = {"pod1", "pod2", "node", "outside", "stranger"};
constexpr const char* kEntries[] = {"cluster", "external", "lb", "nodeport"};

class RandomServices {
 public:
  explicit RandomServices(uint32_t seed) : random_(seed) {}

  ServiceBlock Block(int number) {
    ServiceBlock out{
        .number = number, .name = "s" + std::to_string(number), .protocol = Chance(4) ? "udp" : "tcp"};
    for (const char* flag : {"nodeport", "external", "lb"}) {
      if (!Chance(3)) out.flags.push_back(flag);
    }
    for (const char* flag : {"internal-local", "external-local"}) {
      if (Chance(3)) out.flags.push_back(flag);
    }
    if (Chance(4)) out.flags.push_back(Chance(2) ? "ranges=outside,pods" : "ranges=others");
    for (const char* name : {"pod1", "pod2", "remote"}) {
      if (Chance(2)) continue;
      const char* states[] = {"", "", "", "!", "-"};
      std::string hint = Chance(3) ? (Chance(2) ? "@a" : "@b") : "";
      out.endpoints.push_back(name + std::string(states[random_() % 5]) + hint);
    }
    return out;
  }
  bool Chance(uint32_t of) { return random_() % of == 0; }

 private:
  std::mt19937 random_;
};

std::vector<std::string> Words(const Decision& decision) {
  if (decision.fate == Fate::kRefused) return {"refused"};
  if (decision.fate == Fate::kDropped) return {"dropped"};
  std::vector<std::string> out;
  for (const proxy::Backend& backend : *decision.endpoints) {
    for (const char* name : {"pod1", "pod2", "remote"}) {
      if (backend.ip == EndpointAddress(name, true)) out.push_back(name);
    }
  }
  return out;
}

// A client that happens to send from a port of last round would be taken for the same flow.
Result<> ForgetUdpFlows(const linux::NetNs& node) {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenNetfilterIn(node));
  ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows, netlink::ListFlows(socket, true, proxy::kUdp));
  for (const netlink::Flow& flow : flows) RETURN_IF_ERROR(netlink::DeleteFlow(socket, flow));
  return {};
}

TEST(RandomServices, KernelAndModelAgree) {
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  auto plane =
      (*world)->Start({.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16"), *IpPrefix::Parse("10.2.0.0/16")}});
  ASSERT_TRUE(plane) << plane.error().message();
  const uint32_t seed = 20260101;
  RandomServices random(seed);
  proxy::ServiceMap map(proxy::NodePlace{"here", "a"});
  // Later rounds change what earlier ones made: incremental updates are held to the model too.
  for (int round = 0; round < 24; ++round) {
    ServiceBlock block = random.Block(1 + round % 6);
    std::string key = "default/" + block.name;
    corev1::Service service = block.Service();
    discoveryv1::EndpointSlice slice = block.Slice(true);
    map.UpdateService(key, &service);
    map.UpdateSlice(key + "-4", &slice);
    std::vector<proxy::ResolvedPort> ports = map.Resolve(key, true);
    (*plane)->SetService(key, ports);
    ASSERT_TRUE(ForgetUdpFlows((*world)->node()));
    auto synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    for (const char* client : kClients) {
      for (const char* entry : kEntries) {
        if (std::string(entry) != "cluster" && !block.Has(entry)) continue;
        Decision decision =
            proxy::Decide(ports[0], *EntryOf(entry), OriginOf(client), ClientAddress(client, true));
        Question question = (*world)->From(client, true);
        question.protocol = block.Protocol();
        std::tie(question.to, question.port) = block.Destination(entry, true);
        PacketCase::Seen seen = decision.masquerade ? PacketCase::kMasq : PacketCase::kKeep;
        EXPECT_EQ((*world)->Check(client, question, Words(decision), seen, false), "")
            << "seed " << seed << ", round " << round << ": " << client << " " << entry;
      }
    }
  }
}

TEST(Connections, AThousandOutliveProxiesAndEndpoints) {
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < 4096)
    GTEST_SKIP() << "too few files allowed";
  const PlaneOptions options{.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}};
  ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport", "external"}};
  block.endpoints = {"pod1", "pod2", "remote"};
  proxy::ServiceMap map(proxy::NodePlace{"here", "a"});
  corev1::Service service = block.Service();
  map.UpdateService("default/web", &service);
  auto start = [&](const std::vector<std::string>& endpoints) {
    block.endpoints = endpoints;
    discoveryv1::EndpointSlice slice = block.Slice(true);
    map.UpdateSlice("default/web-4", &slice);
    auto plane = (*world)->Start(options);
    ASSERT_TRUE(plane) << plane.error().message();
    (*plane)->SetService("default/web", map.Resolve("default/web", true));
    auto synced = (*plane)->Sync();
    ASSERT_TRUE(synced) << synced.error().message();
  };
  start({"pod1", "pod2", "remote"});
  std::vector<Conversation> open;
  for (int i = 0; i < 1000; ++i) {
    const char* client = kClients[i % 5];
    Question question = (*world)->From(client, true);
    std::tie(question.to, question.port) = block.Destination(i % 3 == 0   ? "cluster"
                                                             : i % 3 == 1 ? "nodeport"
                                                                          : "external",
                                                             true);
    auto conversation = Conversation::Open((*world)->Place(client), question);
    ASSERT_TRUE(conversation) << i << ": " << conversation.error().message();
    open.push_back(std::move(*conversation));
  }
  // Each start is a proxy that was killed and comes back; endpoints have changed meanwhile.
  for (const std::vector<std::string>& endpoints :
       {std::vector<std::string>{"pod1", "pod2", "remote"}, {"pod1"}, {}, {"pod2", "remote"}}) {
    start(endpoints);
    int dead = 0;
    for (Conversation& conversation : open) dead += !conversation.Echoes();
    EXPECT_EQ(dead, 0) << endpoints.size() << " endpoints";
  }
}

}  // namespace
}  // namespace keelson::netns
