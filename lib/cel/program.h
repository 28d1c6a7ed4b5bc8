// Compiled expressions, and running them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/cel/types/type.h"
#include "lib/cel/values/arena.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

class Env;

// Upstream's limits of run-time costs.
inline constexpr uint64_t kEvaluationCostLimit = 1'000'000;  // one evaluation
inline constexpr uint64_t kRuntimeBudget = 10'000'000;  // all rules of one object, or of one policy binding
inline constexpr uint64_t kMatchConditionsBudget = 2'500'000;  // of one webhook or policy, per request
inline constexpr uint64_t kEstimatedCostLimit = 10'000'000;    // of one rule, times how often it may run
inline constexpr uint64_t kEstimatedCostLimitOfSchema = 100'000'000;

// A range; sums and products stop at the largest number.
struct CostEstimate {
  uint64_t min = 0, max = 0;
};

// The variables of one evaluation. Values have to outlive it.
class Activation {
 public:
  explicit Activation(const Env& env);
  void Set(int index, Value value);              // Env::VariableIndex()
  void Set(std::string_view name, Value value);  // aborts if the environment has no such variable

 private:
  friend class Program;
  const Env& env_;
  std::vector<Value> values_;
};

struct RunLimits {
  uint64_t cost = kEvaluationCostLimit;
  SteadyTime deadline = SteadyTime::max();  // looked at each hundred iterations of a comprehension
};

// What is left for a group of expressions.
class Budget {
 public:
  explicit Budget(uint64_t cost) : left_(cost) {}
  bool exceeded() const { return exceeded_; }
  uint64_t left() const { return left_; }
  void Spend(uint64_t cost) {
    exceeded_ = exceeded_ || cost > left_;
    left_ = exceeded_ ? 0 : left_ - cost;
  }

 private:
  uint64_t left_;
  bool exceeded_ = false;
};

// Immutable and thread safe. Keeps its environment.
class Program {
 public:
  ~Program();

  // The value, which lives as long as the arena, the program and the data. kInvalid with upstream's message when the
  // expression fails: "no such key: x", "division by zero", "operation cancelled: actual cost limit exceeded",
  // "operation interrupted". `cost`, if given, receives what was spent, also on failure.
  Result<Value> Evaluate(const Activation& activation, Arena& arena, const RunLimits& limits = {},
                         uint64_t* cost = nullptr) const;
  // The same, and takes the cost from the budget. A program starts as long as the budget is not exceeded; it may spend
  // what is left and more, up to its limit, as upstream does.
  Result<Value> Evaluate(const Activation& activation, Arena& arena, Budget& budget,
                         const RunLimits& limits = {}) const;

  Type result_type() const;
  const CostEstimate& estimate() const;  // zero without EnvOptions::check_cost
  bool Uses(std::string_view variable) const;
  const std::string& expression() const;

 private:
  friend class Env;
  struct Parts;
  explicit Program(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

}  // namespace keelson::cel
