#include "lib/cel/check/call_estimate.h"

#include <algorithm>

#include "lib/cel/syntax/ast.h"

namespace keelson::cel {
namespace {

constexpr Range64 kOne{1, 1}, kUnknown{0, UINT64_MAX};
constexpr Range64 kAddressBytes{4, 16};
constexpr uint64_t kLongestFormat = 64, kLongestFormatPattern = 128, kListCallCost = 11;

bool IsScalar(Type type) {
  switch (type->kind) {
    case TypeKind::kBool:
    case TypeKind::kInt:
    case TypeKind::kUint:
    case TypeKind::kDouble:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
      return true;
    default:
      return false;
  }
}

bool IsText(Type type) { return type->kind == TypeKind::kString || type->kind == TypeKind::kBytes; }

// The size that the expression or the declaration says; kUnknown if none.
Range64 KnownSize(const EstimatedArg& arg) {
  if (arg.size) return *arg.size;
  if (arg.declared) return {0, static_cast<uint64_t>(arg.declared->max_elements())};
  return kUnknown;
}

std::optional<EstimatedArg> ElementOf(const EstimatedArg& list) {
  if (list.type->params == 0) return std::nullopt;
  EstimatedArg out;
  out.type = list.type->param[0];
  if (list.declared) out.declared = list.declared->element().get();
  return out;
}

Range64 Match(Range64 text, Range64 pattern) {
  return Scale(text + kOne, kTraversalFactor) * Scale(pattern, kPatternFactor);
}

CallEstimate TraverseList(const EstimatedArg& target) {
  auto element = ElementOf(target);
  if (!element) return {Scale(KnownSize(target), kTraversalFactor), {}};
  Range64 cost = kOne;
  if (IsText(element->type)) cost = cost + Scale(KnownSize(*element), kTraversalFactor);
  return {KnownSize(target) * cost, {}};
}

uint64_t Divide(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
uint64_t Increment(uint64_t a) { return a == UINT64_MAX ? a : a + 1; }

// The size of text.replace(from, to): the longest and shortest that replacing can give.
Range64 ReplacedSize(Range64 text, Range64 from, Range64 to) {
  Range64 count, kept;
  if (from.min == 0) {
    count.max = Increment(text.max);
    kept.max = text.max;
  } else if (to.max <= from.min) {
    kept.max = text.max;
  } else {
    count.max = Divide(text.max, from.min);
  }
  if (from.max == 0) {
    count.min = Increment(text.min);
    kept.min = text.min;
  } else if (from.max <= to.min) {
    kept.min = text.min;
  } else {
    count.min = Divide(text.min, from.max);
  }
  return count * to + kept;
}

CallEstimate Join(const EstimatedCall& call) {
  Range64 list = KnownSize(*call.args[0]), size;
  if (auto element = ElementOf(*call.args[0])) size = list * KnownSize(*element);
  if (call.args.size() > 1) {
    Range64 separators{list.min > 0 ? list.min - 1 : 0, list.max > 0 ? list.max - 1 : 0};
    size = size + KnownSize(*call.args[1]) * separators;
  }
  return {Scale(size, kTraversalFactor), size};
}

CallEstimate Equality(std::string_view function, const EstimatedArg& a, const EstimatedArg& b) {
  // Kubernetes' own types, and only ==.
  if (function == operators::kEquals && SameType(a.type, b.type)) {
    for (Type type : {&types::kQuantity, &types::kSemver, &types::kIp, &types::kCidr, &types::kAuthorizer,
                      &types::kPathCheck, &types::kGroupCheck, &types::kResourceCheck, &types::kDecision}) {
      if (SameType(a.type, type)) return {kOne, {}};
    }
    if (SameType(a.type, &types::kNamedFormat)) return {Scale({1, kLongestFormat}, kTraversalFactor), {}};
    if (SameType(a.type, &types::kUrl)) return {Scale({1, b.size ? b.size->max : 1}, kTraversalFactor), {}};
  }
  uint64_t smallest = std::min(SizeOf(a).max, SizeOf(b).max);
  return {Scale({smallest > 0 ? uint64_t{1} : 0, smallest}, kTraversalFactor), {}};
}

CallEstimate ContainsAddress(std::string_view overload, const EstimatedCall& call, bool cidr) {
  Range64 cost = Scale(kAddressBytes + kAddressBytes, kTraversalFactor);
  if (cidr) cost = cost + Scale(kAddressBytes, kTraversalFactor) + kOne;
  if (overload.ends_with("_string")) cost = cost + Scale(KnownSize(*call.args[1]), kTraversalFactor);
  return {cost, {}};
}

CallEstimate Sorted(const EstimatedArg& list, const EstimatedArg& keys) {
  auto element = ElementOf(keys);
  Range64 size = SizeOf(list);
  double factor = element && IsText(element->type) ? 2 + kTraversalFactor : 2;
  return {Scale(size * size, factor) + Range64{kListCallCost, kListCallCost}, size};
}

CallEstimate ByRule(const Overload& overload, const EstimatedCall& call) {
  const auto& args = call.args;
  switch (overload.row->cost) {
    case CostRule::kTraverseFirst:
      // Upstream looks at the argument, not at the receiver, of startsWith and endsWith.
      return {Scale(SizeOf(*args.back()), kTraversalFactor), {}};
    case CostRule::kInList:
      return {SizeOf(*args[1]), {}};
    case CostRule::kCompareTexts:
    case CostRule::kEqual:
      return Equality(overload.row->name, *args[0], *args[1]);
    case CostRule::kConcatTexts: {
      Range64 size = SizeOf(*args[0]) + SizeOf(*args[1]);
      return {Scale(size, kTraversalFactor), size};
    }
    case CostRule::kConcatLists:
      return {kOne, SizeOf(*args[0]) + SizeOf(*args[1])};
    case CostRule::kMatches:
      return {Match(SizeOf(*args[0]), SizeOf(*args[1])), {}};
    case CostRule::kFind: {
      Range64 size = KnownSize(*args[0]);
      return {Match(size, KnownSize(*args[1])), Range64{0, size.max}};
    }
    case CostRule::kContains:
      return {Scale(SizeOf(*args[0]), kTraversalFactor) * Scale(SizeOf(*args[1]), kTraversalFactor), {}};
    case CostRule::kDyn:
      return {kOne, args[0]->size};
    case CostRule::kSetsContains:
      return {SizeOf(*args[0]) * SizeOf(*args[1]) + kOne, {}};
    case CostRule::kSetsEquivalent:
      return {SizeOf(*args[0]) * SizeOf(*args[1]) * Range64{2, 2} + kOne, {}};
    case CostRule::kListOfResult:
    case CostRule::kFlatten:
      return {SizeOf(*args[0]) + Range64{kListCallCost, kListCallCost}, SizeOf(*args[0])};
    case CostRule::kSort:
      return Sorted(*args[0], *args[0]);
    case CostRule::kSortByKeys:
      return Sorted(*args[0], *args[1]);
    case CostRule::kAuthorizerCheck:
      return {{kAuthorizerCheckCost, kAuthorizerCheckCost}, {}};
    case CostRule::kSelector: {
      Range64 size = KnownSize(*args[1]);
      constexpr double kRequirementPerCharacter = 0.5;
      constexpr Range64 kRequirement{kListCost + kObjectCost, kListCost + kObjectCost};
      return {Range64{kListCost, kListCost} + Scale(size, kTraversalFactor) +
                  Scale(size, kRequirementPerCharacter) * kRequirement,
              {}};
    }
    case CostRule::kTraverseList:
      return TraverseList(*args[0]);
    case CostRule::kConvertText:
    case CostRule::kTransformText:
      return {Scale(KnownSize(*args[0]), kTraversalFactor), KnownSize(*args[0])};
    case CostRule::kReplace:
      return {Scale(KnownSize(*args[0]), 2 * kTraversalFactor),
              ReplacedSize(KnownSize(*args[0]), KnownSize(*args[1]), KnownSize(*args[2]))};
    case CostRule::kSplit: {
      Range64 size = KnownSize(*args[0]);
      uint64_t most = call.literal_limit ? static_cast<uint64_t>(*call.literal_limit) : size.max;
      return {Scale(size, 2 * kTraversalFactor), Range64{0, most}};
    }
    case CostRule::kJoin:
      return Join(call);
    case CostRule::kParse:
      return {Scale(KnownSize(*args[0]), kTraversalFactor), {}};
    case CostRule::kParseTwice:
      return {Scale(KnownSize(*args[0]), 2 * kTraversalFactor), {}};
    case CostRule::kContainsIp:
      return ContainsAddress(overload.row->overload, call, false);
    case CostRule::kContainsCidr:
      return ContainsAddress(overload.row->overload, call, true);
    case CostRule::kValidateFormat:
      return {Scale(Scale(KnownSize(*args[1]), kTraversalFactor), kLongestFormatPattern * kPatternFactor),
              {}};
    default:
      return {kOne, {}};
  }
}

}  // namespace

Range64 operator+(Range64 a, Range64 b) { return {AddCosts(a.min, b.min), AddCosts(a.max, b.max)}; }
Range64 operator*(Range64 a, Range64 b) { return {MultiplyCosts(a.min, b.min), MultiplyCosts(a.max, b.max)}; }
Range64 Union(Range64 a, Range64 b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Range64 Scale(Range64 size, double factor) {
  return {ScaleCost(size.min, factor), ScaleCost(size.max, factor)};
}

Range64 SizeOf(const EstimatedArg& arg) {
  if (arg.size || arg.declared) return KnownSize(arg);
  return IsScalar(arg.type) ? kOne : kUnknown;
}

CallEstimate EstimateCall(const Overload& overload, const EstimatedCall& call) {
  const auto& costs = call.arg_costs;
  switch (overload.row->cost) {
    case CostRule::kLogical:
      return {{costs[0].min, AddCosts(costs[0].max, costs[1].max)}, {}};
    case CostRule::kConditional:
      return {costs[0] + Union(costs[1], costs[2]), Union(SizeOf(*call.args[1]), SizeOf(*call.args[2]))};
    default:
      break;
  }
  CallEstimate out = ByRule(overload, call);
  for (Range64 cost : costs) out.cost = out.cost + cost;
  return out;
}

}  // namespace keelson::cel
