// How many nodes may be emptied of pods at a time. Nodes are counted zone by zone: a few that fail are
// emptied one after another; when most of a zone fails at once the network is the likelier culprit, and less
// is done, or nothing; when no zone has a healthy node left, the fault is likely to be ours.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "controlplane/controllers/common/options.h"
#include "controlplane/controllers/node/node_plan.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

enum class ZoneState { kNormal, kPartialDisruption, kFullDisruption };

// Region and zone by the node's labels; empty without any.
std::string ZoneOf(const corev1::Node& node);
ZoneState StateOfZone(int ready, int not_ready, double unhealthy_threshold);
// Nodes a second.
double EvictionRate(ZoneState state, int nodes, const Options& options);

// Not thread safe.
class Zones {
 public:
  explicit Zones(const Options& options) : options_(options) {}

  enum class Mood { kSame, kAllDisrupted, kRecovered };
  // The node as it is now; null: it is gone. kAllDisrupted: with it the last zone has no healthy node left;
  // kRecovered: one has again.
  Mood Update(const std::string& name, const corev1::Node* node, SteadyTime now);
  bool all_disrupted() const { return all_disrupted_; }

  struct Turn {
    bool now = false;                              // this node, now
    std::optional<std::chrono::nanoseconds> wait;  // it is the next one, and then it is time
    std::string next;                              // after this one; empty: nobody waits
  };
  // An unhealthy node asks to be emptied; who came first goes first.
  Turn Ask(const std::string& name, SteadyTime now);
  void Withdraw(const std::string& name);

 private:
  struct Zone {
    int ready = 0, not_ready = 0;
    ZoneState state = ZoneState::kNormal;
    double rate = 0, tokens = 1;  // at most one is saved up
    SteadyTime filled;
    std::deque<std::string> waiting;
  };
  struct Member {
    std::string zone;
    bool counted, ready;
  };
  void Count(const Member& member, int by);
  void Fill(Zone& zone, SteadyTime now);
  void Judge(const std::string& name, SteadyTime now);

  const Options options_;
  std::map<std::string, Zone> zones_;
  std::map<std::string, Member> members_;
  bool all_disrupted_ = false;
};

}  // namespace keelson::controllers
