// The eviction rate by zone (node-eviction-rate and related flags). A healthy zone evicts one node at a time
// at the normal rate. When most nodes of a zone fail at once, the network is the likely cause, so the rate
// drops or evictions stop. When no zone has a healthy node left, the control plane itself is probably cut
// off.
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

// "region:zone" from the node's labels; empty without labels.
std::string ZoneOf(const corev1::Node& node);
ZoneState StateOfZone(int ready, int not_ready, double unhealthy_threshold);
// Nodes per second.
double EvictionRate(ZoneState state, int nodes, const Options& options);

// Not thread safe.
class Zones {
 public:
  explicit Zones(const Options& options) : options_(options) {}

  enum class Mood { kSame, kAllDisrupted, kRecovered };
  // Updates a node; null: deleted. kAllDisrupted: no zone has a healthy node left since this update;
  // kRecovered: one has again.
  Mood Update(const std::string& name, const corev1::Node* node, SteadyTime now);
  bool all_disrupted() const { return all_disrupted_; }

  struct Turn {
    bool now = false;                              // evict this node now
    std::optional<std::chrono::nanoseconds> wait;  // this node is next, after this time
    std::string next;                              // the next node in the queue; empty: none
  };
  // Requests the eviction of an unhealthy node. First come, first served.
  Turn Ask(const std::string& name, SteadyTime now);
  void Withdraw(const std::string& name);

 private:
  struct Zone {
    int ready = 0, not_ready = 0;
    ZoneState state = ZoneState::kNormal;
    double rate = 0, tokens = 1;  // the token bucket holds at most one
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
