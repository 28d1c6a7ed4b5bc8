// Runs policies.txt beside every mode of kube-proxy, cluster_policies.txt beside two of them, and overlays.txt over every
// way between the nodes.
#include <gtest/gtest.h>

#include <iostream>
#include <optional>

#include "tests/policies/overlay.h"
#include "tests/policies/policy_table.h"
#include "tests/policies/probes.h"

namespace keelson::policies {
namespace {

struct Mode {
  const char* name;
  netns::PlaneOptions options = {.mode = "nftables"};
  std::optional<Overlay::Kind> overlay = {};  // nullopt: static routes
};

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

class PolicyTable : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    auto world = PolicyWorld::Make();
    if (!world) GTEST_SKIP() << world.error().message();
    world_ = std::move(*world);
    if (GetParam().overlay) {
      auto overlay = Overlay::Start(*world_, *GetParam().overlay);
      const bool usual =
          *GetParam().overlay == Overlay::Kind::kHostGw || *GetParam().overlay == Overlay::Kind::kVxlan;
      // The VM of tests/vm has what the others need.
      if (!overlay && !usual) GTEST_SKIP() << overlay.error().message();
      ASSERT_TRUE(overlay) << overlay.error().message();
      overlay_ = std::move(*overlay);
    }
    auto services = Services::Start(*world_, GetParam().options);
    // IPVS needs its kernel module: the VM of tests/vm has it.
    if (!services && GetParam().options.mode != "nftables") GTEST_SKIP() << services.error().message();
    ASSERT_TRUE(services) << services.error().message();
    services_ = std::move(*services);
  }

  void RunProbe(const PolicyCase& c, const Step& step) {
    if (!netns::Speaks(step.protocol)) {
      std::cout << c.name << ": skipped, this kernel's own SCTP would answer too\n";
      return;
    }
    if (step.protocol != 6) {
      Result<> forgotten = world_->ForgetDatagrams();
      ASSERT_TRUE(forgotten) << forgotten.error().message();
    }
    std::vector<Probe> probes;
    for (const std::string& from : c.places) {
      for (const std::string& to : c.places) {
        if (!world_->IsPod(from) && !world_->IsPod(to)) continue;
        services_->AddWays(*world_, {.from = from, .to = to, .open = IsOpen(step, from, to)}, step.protocol,
                           step.port, probes);
      }
    }
    for (const std::string& difference : services_->Send(*world_, probes)) {
      ADD_FAILURE() << "line " << step.line << ": " << c.name << ": " << difference;
    }
    for (const Probe& probe : probes) ++(probe.open ? open_ : shut_);
  }

  void RunCase(const PolicyCase& c) {
    world_->Reset();
    for (const Step& step : c.steps) {
      switch (step.kind) {
        case Step::kPolicy: {
          Result<> put = world_->PutPolicy(step.name, step.spec);
          ASSERT_TRUE(put) << "line " << step.line << ": " << put.error().message();
          break;
        }
        case Step::kClusterPolicy: {
          Result<> put = world_->PutClusterPolicy(step.cluster_kind, step.name, step.spec);
          ASSERT_TRUE(put) << "line " << step.line << ": " << put.error().message();
          break;
        }
        case Step::kDeleteClusterPolicy:
          world_->DeleteClusterPolicy(step.name);
          break;
        case Step::kDelete:
          world_->DeletePolicy(step.name);
          break;
        case Step::kLabelNamespace:
          world_->LabelNamespace(step.name, step.labels);
          break;
        case Step::kLabelPod:
          world_->LabelPod(step.name, step.labels);
          break;
        case Step::kProbe: {
          Result<> synced = world_->Sync();
          ASSERT_TRUE(synced) << synced.error().message();
          RunProbe(c, step);
          break;
        }
      }
    }
  }

  void RunTable(const char* path) {
    auto table = ReadPolicyTable(path);
    ASSERT_TRUE(table) << table.error().message();
    // First, so that what is shut later is not shut for want of a neighbour.
    PolicyCase all{.name = "without policies", .places = world_->Pods()};
    for (const char* more : {"node1", "node2", "outside"}) all.places.emplace_back(more);
    for (uint8_t protocol : {6, 17, 132}) {
      all.steps.push_back({.kind = Step::kProbe, .name = "all", .protocol = protocol, .port = 80});
    }
    RunCase(all);
    for (const PolicyCase& c : *table) {
      RunCase(c);
      if (HasFatalFailure()) return;
    }
    std::cout << table->size() << " tests, " << open_ << " open and " << shut_ << " shut connections\n";
  }

  // A connection from `from` to port 80 of `to`, by its address.
  netns::Question Question(const std::string& from, const std::string& to, bool v4) const {
    netns::Question out{.to = world_->Address(to, v4), .port = 80};
    out.source = world_->Address(from, v4);
    out.limit = std::chrono::seconds(20);
    return out;
  }

  std::unique_ptr<PolicyWorld> world_;
  std::unique_ptr<Overlay> overlay_;
  std::unique_ptr<Services> services_;
  int open_ = 0, shut_ = 0;
};

TEST_P(PolicyTable, EveryLineHolds) { RunTable(KEELSON_POLICY_TABLE); }

// Kubernetes leaves it to the implementation what becomes of connections that a new policy forbids.
TEST_P(PolicyTable, EstablishedConnectionsGoOn) {
  const char deny[] = R"({"podSelector":{},"policyTypes":["Ingress","Egress"]})";
  std::vector<netns::Conversation> talks;
  auto begin = [&] {
    for (const auto& [from, to] : {std::pair("x/b", "x/a"), {"y/b", "x/a"}, {"x/a", "y/b"}}) {
      for (bool v4 : {true, false}) {
        auto talk = netns::Conversation::Open(world_->Place(from), Question(from, to, v4));
        ASSERT_TRUE(talk) << from << " to " << to << ": " << talk.error().message();
        talks.push_back(std::move(*talk));
      }
    }
  };
  begin();
  ASSERT_TRUE(world_->PutPolicy("x/deny-all", deny));
  ASSERT_TRUE(world_->Sync());
  for (netns::Conversation& talk : talks) EXPECT_TRUE(talk.Echoes());
  world_->DeletePolicy("x/deny-all");
  ASSERT_TRUE(world_->Sync());
  begin();
  for (netns::Conversation& talk : talks) EXPECT_TRUE(talk.Echoes());
}

class PolicyOverlays : public PolicyTable {};

TEST_P(PolicyOverlays, EveryLineHolds) { RunTable(KEELSON_OVERLAY_TABLE); }

INSTANTIATE_TEST_SUITE_P(Ways, PolicyOverlays,
                         ::testing::Values(Mode{.name = "HostGw", .overlay = Overlay::Kind::kHostGw},
                                           Mode{.name = "Vxlan", .overlay = Overlay::Kind::kVxlan},
                                           Mode{.name = "Ipsec", .overlay = Overlay::Kind::kIpsec},
                                           Mode{.name = "Wireguard", .overlay = Overlay::Kind::kWireguard}),
                         [](const auto& mode) { return std::string(mode.param.name); });

// Where a pod that reaches itself by a Service comes by the rules.
class ClusterPolicies : public PolicyTable {};

TEST_P(ClusterPolicies, EveryLineHolds) { RunTable(KEELSON_CLUSTER_POLICY_TABLE); }

INSTANTIATE_TEST_SUITE_P(Modes, ClusterPolicies,
                         ::testing::Values(Mode{.name = "Nftables"},
                                           Mode{.name = "Ipvs", .options = {.mode = "ipvs"}}),
                         [](const auto& mode) { return std::string(mode.param.name); });

INSTANTIATE_TEST_SUITE_P(Modes, PolicyTable,
                         ::testing::Values(Mode{"Nftables", {.mode = "nftables"}},
                                           Mode{"EbpfSockets", {.mode = "ebpf"}},
                                           Mode{"EbpfDirect", {.mode = "ebpf", .direct = true}},
                                           Mode{"Ipvs", {.mode = "ipvs"}}),
                         [](const auto& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace keelson::policies
