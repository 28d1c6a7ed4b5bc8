#include "controlplane/controllers/podautoscaler/behavior.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keelson::controllers::podautoscaler {
namespace {

using Behavior = api::autoscaling::v2::HorizontalPodAutoscalerBehavior;
using Rules = api::autoscaling::v2::HPAScalingRules;
using Entries = std::vector<History::Entry>;
using std::chrono::seconds;

// Without spec.behavior replicas at most double, or become four.
constexpr int64_t kFactor = 2, kLeast = 4;

int32_t Clamp(double replicas) {
  constexpr double kMax = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(replicas, -kMax, kMax));
}

void Forget(Entries& entries, WallTime before) {
  std::erase_if(entries, [&](const History::Entry& entry) { return entry.time < before; });
}

int64_t SumSince(const Entries& entries, WallTime after) {
  int64_t sum = 0;
  for (const History::Entry& entry : entries) sum += entry.time > after ? entry.value : 0;
  return sum;
}

seconds LongestPeriod(const Rules& rules) {
  int32_t longest = 0;
  for (const auto& policy : rules.policies()) longest = std::max(longest, policy.period_seconds());
  return seconds(longest);
}

// The limit of one policy, for the replicas `start` at the beginning of its period.
double Reach(const api::autoscaling::v2::HPAScalingPolicy& policy, int64_t start, int sign) {
  if (policy.type() == "Pods") return double(start) + sign * double(policy.value());
  const double reach = double(start) * (1 + sign * policy.value() / 100.0);
  // Round up so that growth makes progress; round down so that shrinking does.
  return sign > 0 ? std::ceil(reach) : std::floor(reach);
}

// sign +1: the maximum of replicas; -1: the minimum.
int32_t LimitOf(const Rules& rules, const History& history, int32_t current, int sign, WallTime now) {
  if (rules.select_policy() == "Disabled") return current;
  const bool least_change = rules.select_policy() == "Min";
  bool any = false;
  double limit = 0;
  for (const auto& policy : rules.policies()) {
    const WallTime begin = now - seconds(policy.period_seconds());
    const int64_t start = current - SumSince(history.ups, begin) + SumSince(history.downs, begin);
    const double reach = Reach(policy, start, sign);
    const bool lower = (sign > 0) == least_change;
    limit = !any ? reach : lower ? std::min(limit, reach) : std::max(limit, reach);
    any = true;
  }
  if (!any) return current;
  // Earlier changes in the period may exceed the limit: then keep the current replicas.
  return sign > 0 ? std::max(Clamp(limit), current) : std::min(Clamp(limit), current);
}

struct Limited {
  int32_t replicas;
  std::string_view reason, message;
};
constexpr std::string_view kTooFast =
                               "the desired replica count is increasing faster than the maximum scale rate",
                           kTooFastDown =
                               "the desired replica count is decreasing faster than the maximum scale rate",
                           kTooMany = "the desired replica count is more than the maximum replica count",
                           kTooFew = "the desired replica count is less than the minimum replica count";

Limited WithinRange(int32_t replicas) {
  return {replicas, "DesiredWithinRange", "the desired count is within the acceptable range"};
}

Limited LimitPlainly(const Wish& wish, int32_t desired) {
  const int32_t rate = static_cast<int32_t>(std::min(std::max(kFactor * wish.current_replicas, kLeast),
                                                     int64_t{std::numeric_limits<int32_t>::max()}));
  if (desired < wish.min_replicas) return {wish.min_replicas, "TooFewReplicas", kTooFew};
  if (wish.max_replicas > rate) {
    if (desired > rate) return {rate, "ScaleUpLimit", kTooFast};
  } else if (desired > wish.max_replicas) {
    return {wish.max_replicas, "TooManyReplicas", kTooMany};
  }
  return WithinRange(desired);
}

Limited LimitByRules(const Wish& wish, const Behavior& behavior, int32_t desired, WallTime now,
                     const History& history) {
  if (desired > wish.current_replicas) {
    const int32_t rate = LimitOf(behavior.scale_up(), history, wish.current_replicas, 1, now);
    if (wish.max_replicas > rate) {
      if (desired > rate) return {rate, "ScaleUpLimit", kTooFast};
    } else if (desired > wish.max_replicas) {
      return {wish.max_replicas, "TooManyReplicas", kTooMany};
    }
  } else if (desired < wish.current_replicas) {
    const int32_t rate = LimitOf(behavior.scale_down(), history, wish.current_replicas, -1, now);
    if (wish.min_replicas < rate) {
      if (desired < rate) return {rate, "ScaleDownLimit", kTooFastDown};
    } else if (desired < wish.min_replicas) {
      return {wish.min_replicas, "TooFewReplicas", kTooFew};
    }
  }
  return WithinRange(desired);
}

// The highest recommendation within the window.
int32_t StabilizePlainly(const Wish& wish, seconds window, WallTime now, History& history) {
  Forget(history.recommendations, now - window);
  int32_t desired = wish.desired_replicas;
  for (const History::Entry& entry : history.recommendations) desired = std::max(desired, entry.value);
  return desired;
}

// Upwards: at most the lowest recommendation of the up window. Downwards: at least the highest of the down
// window.
int32_t StabilizeByRules(const Wish& wish, const Behavior& behavior, WallTime now, History& history) {
  const seconds up(behavior.scale_up().stabilization_window_seconds()),
      down(behavior.scale_down().stabilization_window_seconds());
  Forget(history.recommendations, now - std::max(up, down));
  int32_t lowest = wish.desired_replicas, highest = wish.desired_replicas;
  for (const History::Entry& entry : history.recommendations) {
    if (entry.time > now - up) lowest = std::min(lowest, entry.value);
    if (entry.time > now - down) highest = std::max(highest, entry.value);
  }
  return std::min(std::max(wish.current_replicas, lowest), highest);
}

// The defaults of autoscaling/v2, for objects stored without them by another API server.
Behavior Complete(const Behavior& given, seconds down_window) {
  Behavior out = given;
  auto add = [](Rules& rules, const char* type, int32_t value) {
    auto& policy = *rules.add_policies();
    policy.set_type(type);
    policy.set_value(value);
    policy.set_period_seconds(15);
  };
  Rules &up = *out.mutable_scale_up(), &down = *out.mutable_scale_down();
  if (up.policies().empty()) {
    add(up, "Pods", 4);
    add(up, "Percent", 100);
  }
  if (down.policies().empty()) add(down, "Percent", 100);
  if (!down.has_stabilization_window_seconds()) {
    down.set_stabilization_window_seconds(static_cast<int32_t>(down_window.count()));
  }
  return out;
}

}  // namespace

Decision Decide(const Wish& wish, const Behavior* given, seconds down_window, WallTime now,
                History& history) {
  int32_t desired = wish.desired_replicas;
  Behavior behavior;
  if (given) {
    behavior = Complete(*given, down_window);
    desired = StabilizeByRules(wish, behavior, now, history);
  } else {
    desired = StabilizePlainly(wish, down_window, now, history);
  }
  history.recommendations.push_back({now, wish.desired_replicas});

  Decision out{};
  if (desired == wish.desired_replicas) {
    out.able_reason = "ReadyForNewScale";
    out.able_message = "recommended size matches current size";
  } else if (given && wish.desired_replicas >= wish.current_replicas) {
    out.able_reason = "ScaleUpStabilized";
    out.able_message =
        "recent recommendations were lower than current one, applying the lowest recent recommendation";
  } else {
    out.able_reason = "ScaleDownStabilized";
    out.able_message =
        "recent recommendations were higher than current one, applying the highest recent recommendation";
  }
  const Limited limited =
      given ? LimitByRules(wish, behavior, desired, now, history) : LimitPlainly(wish, desired);
  out.replicas = limited.replicas;
  out.limited = limited.replicas != desired;
  out.limited_reason = limited.reason;
  out.limited_message = limited.message;
  return out;
}

void NoteScale(int32_t before, int32_t after, const Behavior* given, WallTime now, History& history) {
  if (!given || before == after) return;
  const Behavior behavior = Complete(*given, seconds(0));
  const bool up = after > before;
  Entries& entries = up ? history.ups : history.downs;
  Forget(entries, now - LongestPeriod(up ? behavior.scale_up() : behavior.scale_down()));
  entries.push_back({now, up ? after - before : before - after});
}

}  // namespace keelson::controllers::podautoscaler
