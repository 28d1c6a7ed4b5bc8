// The executable form of an expression: a tree of nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/cel/functions/run_cost.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

inline constexpr std::string_view kCostExceeded = "operation cancelled: actual cost limit exceeded";
inline constexpr std::string_view kInterrupted = "operation interrupted";
inline constexpr int kInterruptCheckIterations = 100;

// The state of one evaluation.
struct Frame {
  Arena& arena;
  std::span<const Value> variables;
  std::span<Value> locals;
  uint64_t cost_limit;
  SteadyTime deadline;
  uint64_t cost = 0;
  int iterations = 0;
  bool stopped = false;  // over the limit or the deadline: no && or || may hide it
  std::string_view reason;

  // False, and the evaluation stops, when the limit is passed.
  bool Charge(uint64_t amount) {
    cost = AddCosts(cost, amount);
    if (cost <= cost_limit) [[likely]]
      return true;
    return Stop(kCostExceeded);
  }
  bool Stop(std::string_view why) {
    if (!stopped) reason = why;
    stopped = true;
    return false;
  }
  Value StopError() const { return Value::StaticError(reason); }
};

// Immutable. Errors are results; so is the end of the budget.
class Node {
 public:
  virtual ~Node() = default;
  virtual Value Eval(Frame& frame) const = 0;
  // The value of a literal; null for other nodes.
  virtual const Value* constant() const { return nullptr; }
};

}  // namespace keelson::cel
