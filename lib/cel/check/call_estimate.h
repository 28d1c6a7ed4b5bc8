// Estimates of single calls.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/cel/check/estimate.h"
#include "lib/cel/functions/function.h"
#include "lib/cel/functions/run_cost.h"

namespace keelson::cel {

// What is known of an argument.
struct EstimatedArg {
  Type type = nullptr;
  const DeclType* declared = nullptr;  // reached from a variable with a declared type
  std::optional<Range64> size;         // of literals and of results of calls
};

struct EstimatedCall {
  bool member = false;
  std::vector<const EstimatedArg*> args;  // the receiver first
  std::vector<Range64> arg_costs;         // without the receiver's
  std::optional<int64_t> literal_limit;   // split(separator, 3)
};

struct CallEstimate {
  Range64 cost;                 // with the arguments, without the receiver
  std::optional<Range64> size;  // of the result
};

CallEstimate EstimateCall(const Overload& overload, const EstimatedCall& call);

// How many characters, bytes, items or entries: 0 to 2^64-1 when nothing is known, 1 of scalars.
Range64 SizeOf(const EstimatedArg& arg);

Range64 operator+(Range64 a, Range64 b);
Range64 operator*(Range64 a, Range64 b);
Range64 Union(Range64 a, Range64 b);
Range64 Scale(Range64 size, double factor);  // rounded up

}  // namespace keelson::cel
