// Functions and their overloads: what the checker resolves and the evaluator calls. Libraries describe them in tables.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/cel/types/type.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

// Arguments (the receiver first) are no errors, and fit the overload's types unless the row is `dynamic`. An error is a
// result. Thread safe.
using Implementation = Value (*)(std::span<const Value> args, Arena& arena);

// How a call is charged beside its arguments, when it runs (functions/run_cost.h) and in estimates (check/estimate.h).
enum class CostRule : uint8_t {
  kOne,
  kTraverseFirst,  // startsWith, bytes(string), ...: a traversal of the first argument
  kInList,
  kCompareTexts,  // < of strings and bytes
  kEqual,
  kConcatTexts,
  kConcatLists,
  kMatches,
  kContains,
  kConditional,
  kLogical,
  kDyn,
  kSetsContains,
  kSetsEquivalent,
  kListOfResult,  // slice, reverse, lists.range
  kFlatten,
  kSort,
  kSortByKeys,
  kAuthorizerCheck,
  kSelector,       // fieldSelector, labelSelector
  kTraverseList,   // isSorted, sum, min, max, indexOf, lastIndexOf
  kConvertText,    // url, jsonpatch.escapeKey: a traversal; the result is as large
  kTransformText,  // lowerAscii, trim, substring, ...: the same of the receiver
  kReplace,
  kSplit,
  kJoin,
  kFind,
  kParse,       // cidr, ip, quantity, semver, ...: a traversal
  kParseTwice,  // ip.isCanonical
  kNominal,     // accessors
  kContainsIp,
  kContainsCidr,
  kValidateFormat,
};

// One row of a library: an overload.
struct FunctionRow {
  std::string_view name;
  std::string_view overload;
  std::string_view receiver;  // empty: a global function
  std::string_view args;      // "string,int"
  std::string_view result;
  int since;            // minor version of the environment, 0: always
  Implementation call;  // null: the evaluator has the operator built in
  CostRule cost = CostRule::kOne;
  bool dynamic = false;  // looks at the arguments' kinds itself
};

struct Overload {
  const FunctionRow* row;
  bool member;
  bool generic;            // has type parameters
  std::vector<Type> args;  // the receiver first
  Type result;
  int parameters = 0;  // kParam nodes in args and result have `variable` 0 to parameters - 1
};

struct Function {
  std::string_view name;
  std::vector<const Overload*> overloads;
};

// The functions of one environment. Immutable once built.
class FunctionTable {
 public:
  // Adds rows up to the version.
  void Add(std::span<const FunctionRow> rows, int version);
  const Function* Find(std::string_view name) const;
  const std::deque<Overload>& overloads() const { return overloads_; }

 private:
  TypePool types_;
  std::deque<Overload> overloads_;
  std::unordered_map<std::string_view, Function> functions_;
};

// The type with parameters 0, 1, ... instead of names; `names` collects them.
Type NumberParameters(Type type, TypePool& pool, std::vector<std::string_view>& names);

// True when a value of this kind may be passed where the type is declared: parameters of types are not looked at.
bool FitsAtRunTime(const Value& value, Type type);

// "no such overload: charAt(int, string)".
Value NoSuchOverload(std::string_view function, std::span<const Value> args, Arena& arena);

}  // namespace keelson::cel
