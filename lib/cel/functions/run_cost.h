// What calls cost when they run.
#pragma once

#include <cstdint>
#include <span>

#include "lib/cel/functions/function.h"

namespace keelson::cel {

inline constexpr uint64_t kAuthorizerCheckCost = 350'000;  // so that an expression has two
inline constexpr uint64_t kListCost = 10, kMapCost = 30, kObjectCost = 40;
inline constexpr double kTraversalFactor = 0.1, kPatternFactor = 0.25;

// Of one call, beside its arguments. `overload` is the one that was called, for rules that tell overloads apart.
uint64_t RunCost(CostRule rule, std::string_view overload, std::span<const Value> args, const Value& result,
                 Arena& arena);

// Sums that stop at the end of the range.
uint64_t AddCosts(uint64_t a, uint64_t b);
uint64_t MultiplyCosts(uint64_t a, uint64_t b);
uint64_t ScaleCost(uint64_t size, double factor);  // rounded up

}  // namespace keelson::cel
