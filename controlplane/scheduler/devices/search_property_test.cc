// The search against a naive one, which tries every device for every request and judges only complete solutions.
#include <gtest/gtest.h>

#include <random>

#include "controlplane/scheduler/devices/testing/device_problem.h"

namespace keelson::scheduler {
namespace {

using testing::DeviceProblem;
using testing::MakeClaim;

struct NaiveDevice {
  int size = 0, group = 0;  // attributes; group -1: absent
  bool tainted = false, shareable = false;
  int capacity = 0, counter = 0;  // 0: none
  bool used = false;              // by a claim alone
  int shared = 0;                 // of the capacity, by other claims
};
struct NaiveRequest {
  int at_least = 0;  // size
  int count = 1;
  bool all = false, admin = false, tolerates = false;
  int capacity = 0;  // requested; 0: none
};
struct NaiveClaim {
  std::vector<std::vector<NaiveRequest>> requests;  // alternatives
  int constraint = 0;                               // 0: none, 1: match group, 2: distinct group
};
struct Naive {
  std::vector<NaiveDevice> devices;
  std::vector<NaiveClaim> claims;
  int counter = 0;  // of the pool
};
struct NaivePick {
  size_t claim;
  const NaiveRequest* request;
  size_t device;
};

bool Matches(const NaiveDevice& device, const NaiveRequest& request) {
  if (device.size < request.at_least) return false;
  if (request.capacity > 0 && device.capacity == 0) return false;
  return request.capacity <= device.capacity || device.capacity == 0;
}

int Takes(const NaiveDevice& device, const NaiveRequest& request) {
  return request.capacity > 0 ? request.capacity : device.capacity;
}

bool Judge(const Naive& problem, const std::vector<NaivePick>& picks) {
  std::vector<int> sole(problem.devices.size()), taken(problem.devices.size());
  std::set<std::pair<size_t, size_t>> in_claim;
  std::set<size_t> counted;
  int counters = problem.counter;
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    const NaiveDevice& device = problem.devices[d];
    taken[d] = device.shared;
    if (device.used || device.shared > 0) {
      counters -= device.counter;
      counted.insert(d);
    }
  }
  std::map<size_t, std::vector<int>> groups;
  for (const NaivePick& pick : picks) {
    const NaiveDevice& device = problem.devices[pick.device];
    if (!Matches(device, *pick.request)) return false;
    if (device.tainted && !pick.request->tolerates) return false;
    if (device.shareable) {
      if (device.used && !pick.request->admin) return false;
      taken[pick.device] += Takes(device, *pick.request);
      if (taken[pick.device] > device.capacity) return false;
    } else {
      if (!in_claim.emplace(pick.claim, pick.device).second) return false;
      if (!pick.request->admin && (device.used || ++sole[pick.device] > 1)) return false;
    }
    if (!pick.request->admin && device.counter > 0 && counted.insert(pick.device).second) {
      counters -= device.counter;
      if (counters < 0) return false;
    }
    groups[pick.claim].push_back(device.group);
  }
  for (const auto& [claim, values] : groups) {
    const int constraint = problem.claims[claim].constraint;
    if (constraint == 0) continue;
    const std::set<int> distinct(values.begin(), values.end());
    if (distinct.contains(-1)) return false;
    if (constraint == 1 ? distinct.size() > 1 : distinct.size() < values.size()) return false;
  }
  return true;
}

class NaiveSearch {
 public:
  explicit NaiveSearch(const Naive& problem) : problem_(problem) {}
  // The alternatives of the first solution, by claim and request; empty: there is none.
  std::vector<size_t> Run() {
    for (size_t c = 0; c < problem_.claims.size(); ++c) {
      for (const auto& request : problem_.claims[c].requests) places_.push_back({c, &request});
    }
    return Choose(0) ? chosen_ : std::vector<size_t>();
  }

 private:
  bool Choose(size_t place) {
    if (place == places_.size()) {
      picks_.clear();
      return Assign(0);
    }
    for (size_t i = 0; i < places_[place].second->size(); ++i) {
      chosen_.push_back(i);
      if (Choose(place + 1)) return true;
      chosen_.pop_back();
    }
    return false;
  }
  bool Assign(size_t place) {
    if (place == places_.size()) return Judge(problem_, picks_);
    const auto& [claim, alternatives] = places_[place];
    const NaiveRequest& request = (*alternatives)[chosen_[place]];
    const size_t before = picks_.size();
    if (!request.all) {
      const bool found = Assign(place, claim, request, request.count);
      picks_.resize(before);
      return found;
    }
    for (size_t d = 0; d < problem_.devices.size(); ++d) {
      const NaiveDevice& device = problem_.devices[d];
      const bool room =
          !device.shareable || device.shared + Taken(d) + Takes(device, request) <= device.capacity;
      if (Matches(device, request) && room) picks_.push_back({claim, &request, d});
    }
    const bool found = picks_.size() > before && Assign(place + 1);
    picks_.resize(before);
    return found;
  }
  bool Assign(size_t place, size_t claim, const NaiveRequest& request, int left) {
    if (left == 0) return Assign(place + 1);
    for (size_t d = 0; d < problem_.devices.size(); ++d) {
      picks_.push_back({claim, &request, d});
      if (Assign(place, claim, request, left - 1)) return true;
      picks_.pop_back();
    }
    return false;
  }
  int Taken(size_t device) const {
    int sum = 0;
    for (const NaivePick& pick : picks_) {
      if (pick.device == device) sum += Takes(problem_.devices[device], *pick.request);
    }
    return sum;
  }

  const Naive& problem_;
  std::vector<std::pair<size_t, const std::vector<NaiveRequest>*>> places_;
  std::vector<size_t> chosen_;
  std::vector<NaivePick> picks_;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  bool OneIn(int n) { return Below(n) == 0; }

  Naive Make() {
    Naive out;
    const bool counters = OneIn(3);
    out.counter = counters ? 2 + Below(4) : 0;
    const int devices = 1 + Below(5);
    for (int i = 0; i < devices; ++i) {
      NaiveDevice device;
      device.size = Below(3);
      device.group = Below(4) - 1;
      device.tainted = OneIn(5);
      device.shareable = OneIn(4);
      device.capacity = device.shareable ? 1 + Below(4) : Below(2) * (1 + Below(3));
      device.counter = counters ? Below(3) : 0;
      device.used = !device.shareable && OneIn(5);
      device.shared = device.shareable ? Below(device.capacity + 1) : 0;
      out.devices.push_back(device);
    }
    int picks = 1 + Below(4);
    while (picks > 0) {
      NaiveClaim& claim = out.claims.emplace_back();
      claim.constraint = OneIn(2) ? 0 : 1 + Below(2);
      for (int r = 1 + Below(2); r > 0 && picks > 0; --r) {
        std::vector<NaiveRequest>& request = claim.requests.emplace_back();
        const int alternatives = OneIn(3) ? 2 : 1;
        int most = 0;
        for (int a = 0; a < alternatives; ++a) {
          NaiveRequest one;
          one.at_least = Below(3);
          one.count = 1 + Below(std::min(picks, 3));
          one.all = OneIn(6);
          one.admin = alternatives == 1 && OneIn(6);
          one.tolerates = OneIn(2);
          one.capacity = OneIn(3) ? 1 + Below(3) : 0;
          most = std::max(most, one.count);
          request.push_back(one);
        }
        picks -= most;
      }
    }
    return out;
  }

 private:
  std::mt19937_64 random_;
};

std::string SliceOf(const Naive& problem) {
  std::string devices;
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const NaiveDevice& device = problem.devices[i];
    devices +=
        fmt::format(R"({}{{"name":"d{}","attributes":{{"size":{{"int":{}}})", i ? "," : "", i, device.size);
    if (device.group >= 0) devices += fmt::format(R"(,"group":{{"string":"g{}"}})", device.group);
    devices += "}";
    if (device.tainted) devices += R"(,"taints":[{"key":"k","effect":"NoSchedule"}])";
    if (device.shareable) devices += R"(,"allowMultipleAllocations":true)";
    if (device.capacity > 0) {
      devices += fmt::format(R"(,"capacity":{{"c":{{"value":"{}"}}}})", device.capacity);
    }
    if (device.counter > 0) {
      devices +=
          fmt::format(R"(,"consumesCounters":[{{"counterSet":"s","counters":{{"n":{{"value":"{}"}}}}}}])",
                      device.counter);
    }
    devices += "}";
  }
  return fmt::format(
      R"("nodeName":"n1","sharedCounters":[{{"name":"s","counters":{{"n":{{"value":"{}"}}}}}}],"devices":[{}])",
      problem.counter, devices);
}

std::string Fields(const NaiveRequest& request) {
  std::string out = fmt::format(
      R"("deviceClassName":"c","selectors":[{{"cel":{{"expression":"device.attributes['d.com'].size >= {}"}}}}])",
      request.at_least);
  out += request.all ? R"(,"allocationMode":"All")" : fmt::format(R"(,"count":{})", request.count);
  if (request.admin) out += R"(,"adminAccess":true)";
  if (request.tolerates) out += R"(,"tolerations":[{"operator":"Exists"}])";
  if (request.capacity > 0) {
    out += fmt::format(R"(,"capacity":{{"requests":{{"c":"{}"}}}})", request.capacity);
  }
  return out;
}

std::shared_ptr<resourcev1::ResourceClaim> ClaimOf(const NaiveClaim& claim, size_t number) {
  std::string requests;
  for (size_t r = 0; r < claim.requests.size(); ++r) {
    const auto& alternatives = claim.requests[r];
    requests += fmt::format(R"({}{{"name":"r{}",)", r ? "," : "", r);
    if (alternatives.size() == 1) {
      requests += R"("exactly":{)" + Fields(alternatives[0]) + "}}";
      continue;
    }
    requests += R"("firstAvailable":[{"name":"a0",)" + Fields(alternatives[0]) + R"(},{"name":"a1",)" +
                Fields(alternatives[1]) + "}]}";
  }
  std::string spec = "\"requests\":[" + requests + "]";
  if (claim.constraint > 0) {
    spec += fmt::format(R"(,"constraints":[{{"{}Attribute":"d.com/group"}}])",
                        claim.constraint == 1 ? "match" : "distinct");
  }
  return MakeClaim(fmt::format("c{}", number), spec);
}

void UseDevices(const Naive& problem, DeviceUses& uses) {
  resourcev1::AllocationResult allocation;
  for (size_t i = 0; i < problem.devices.size(); ++i) {
    const NaiveDevice& device = problem.devices[i];
    if (!device.used && device.shared == 0) continue;
    auto& result = *allocation.mutable_devices()->add_results();
    result.set_driver(testing::kDriver);
    result.set_pool("p1");
    result.set_device(fmt::format("d{}", i));
    if (device.used) continue;
    result.set_share_id("x");
    (*result.mutable_consumed_capacity())["c"].set_string(std::to_string(device.shared));
  }
  uses.Add(allocation);
}

TEST(SearchProperty, FindsASolutionWhereThereIsOne) {
  int solved = 0, unsolved = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    const Naive problem = Generator(seed).Make();
    DeviceProblem real;
    real.Slice("p1", SliceOf(problem));
    UseDevices(problem, real.uses);
    std::vector<std::shared_ptr<resourcev1::ResourceClaim>> claims;
    for (size_t i = 0; i < problem.claims.size(); ++i) claims.push_back(ClaimOf(problem.claims[i], i));
    const std::string text = real.Solve(claims);
    const std::vector<size_t> expected = NaiveSearch(problem).Run();
    if (expected.empty()) {
      ++unsolved;
      ASSERT_EQ(text, "-") << "seed " << seed << "\n" << SliceOf(problem) << "\n" << claims[0]->DebugString();
      continue;
    }
    ++solved;
    ASSERT_NE(text, "-") << "seed " << seed << "\n" << SliceOf(problem) << "\n" << claims[0]->DebugString();
    // The solution is one, and takes the first alternatives that can be had.
    std::vector<size_t> chosen;
    std::vector<NaivePick> picks;
    for (size_t c = 0; c < real.found.size(); ++c) {
      chosen.insert(chosen.end(), real.found[c].alternatives.begin(), real.found[c].alternatives.end());
      for (const PickedDevice& picked : real.found[c].devices) {
        for (size_t r = 0; r < real.plans[c].requests.size(); ++r) {
          const auto& alternatives = real.plans[c].requests[r].alternatives;
          for (size_t a = 0; a < alternatives.size(); ++a) {
            if (&alternatives[a] == picked.request) {
              picks.push_back({c, &problem.claims[c].requests[r][a], picked.device});
            }
          }
        }
      }
    }
    ASSERT_EQ(chosen, expected) << "seed " << seed << ": " << text;
    ASSERT_TRUE(Judge(problem, picks)) << "seed " << seed << ": " << text;
  }
  EXPECT_GT(solved, 100);
  EXPECT_GT(unsolved, 100);
}

}  // namespace
}  // namespace keelson::scheduler
