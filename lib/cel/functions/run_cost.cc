#include "lib/cel/functions/run_cost.h"

#include <algorithm>
#include <cmath>

namespace keelson::cel {
namespace {

constexpr double kMaxCost = 18446744073709551615.0;
constexpr uint64_t kListCallCost = 11;            // the call and the list that it makes
constexpr double kRequirementPerCharacter = 0.5;  // of a selector; the shortest requirement is "k,"
constexpr uint64_t kRequirementCost = kListCost + kObjectCost;

uint64_t Traverse(const Value& value, double factor = kTraversalFactor) {
  return ScaleCost(CostSize(value), factor);
}

// One element costs one; strings and bytes a tenth of their bytes.
uint64_t TraverseDeep(const Value& value, Arena& arena) {
  uint64_t cost = 0;
  switch (value.kind()) {
    case ValueKind::kString:
    case ValueKind::kBytes:
      return static_cast<uint64_t>(static_cast<double>(value.text().size()) * kTraversalFactor);
    case ValueKind::kList:
      for (size_t i = 0; i < value.list().Size(); ++i) cost += TraverseDeep(value.list().At(i, arena), arena);
      return cost;
    case ValueKind::kMap:
    case ValueKind::kObject:
      for (size_t i = 0; i < value.map().Size(); ++i) {
        cost += TraverseDeep(value.map().KeyAt(i, arena), arena) +
                TraverseDeep(value.map().ValueAt(i, arena), arena);
      }
      return cost;
    default:
      return 1;
  }
}

uint64_t Match(const Value& text, const Value& pattern) {
  return MultiplyCosts(ScaleCost(CostSize(text) + 1, kTraversalFactor), Traverse(pattern, kPatternFactor));
}

uint64_t SortCost(const Value& keys, Arena& arena) {
  uint64_t n = CostSize(keys);
  bool texts = false;
  if (n > 0) {
    Value first = keys.list().At(0, arena);
    texts = first.Is(ValueKind::kString) || first.Is(ValueKind::kBytes);
  }
  return AddCosts(kListCallCost, ScaleCost(MultiplyCosts(n, n), texts ? 2 + kTraversalFactor : 2));
}

uint64_t ContainsAddress(std::string_view overload, std::span<const Value> args, bool cidr) {
  uint64_t size = CostSize(args[0]);
  uint64_t cost = ScaleCost(2 * size, kTraversalFactor);
  if (cidr) cost += ScaleCost(size, kTraversalFactor) + 1;
  if (overload.ends_with("_string")) cost += Traverse(args[1]);
  return cost;
}

}  // namespace

uint64_t AddCosts(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

uint64_t MultiplyCosts(uint64_t a, uint64_t b) {
  uint64_t out;
  return __builtin_mul_overflow(a, b, &out) ? UINT64_MAX : out;
}

uint64_t ScaleCost(uint64_t size, double factor) {
  double product = static_cast<double>(size) * factor;
  return product >= kMaxCost ? UINT64_MAX : static_cast<uint64_t>(std::ceil(product));
}

uint64_t RunCost(CostRule rule, std::string_view overload, std::span<const Value> args, const Value& result,
                 Arena& arena) {
  switch (rule) {
    case CostRule::kTraverseFirst:
    case CostRule::kConvertText:
    case CostRule::kTransformText:
    case CostRule::kParse:
      return Traverse(args[0]);
    case CostRule::kInList:
      return CostSize(args[1]);
    case CostRule::kCompareTexts:
    case CostRule::kEqual:
      if (args[0].Is(ValueKind::kOpaque)) return 1;
      return ScaleCost(std::min(CostSize(args[0]), CostSize(args[1])), kTraversalFactor);
    case CostRule::kConcatTexts:
      return ScaleCost(CostSize(args[0]) + CostSize(args[1]), kTraversalFactor);
    case CostRule::kMatches:
    case CostRule::kFind:
      return Match(args[0], args[1]);
    case CostRule::kContains:
      return MultiplyCosts(Traverse(args[0]), Traverse(args[1]));
    case CostRule::kConditional:
    case CostRule::kLogical:
      return 0;
    case CostRule::kSetsContains:
      return AddCosts(1, MultiplyCosts(CostSize(args[0]), CostSize(args[1])));
    case CostRule::kSetsEquivalent:
      return AddCosts(1, MultiplyCosts(2, MultiplyCosts(CostSize(args[0]), CostSize(args[1]))));
    case CostRule::kListOfResult:
      return AddCosts(kListCallCost, CostSize(result));
    case CostRule::kFlatten: {
      uint64_t depth = args.size() > 1 && args[1].Is(ValueKind::kInt)
                           ? static_cast<uint64_t>(std::max<int64_t>(args[1].as_int(), 0))
                           : 1;
      return AddCosts(kListCallCost, MultiplyCosts(depth, CostSize(args[0])));
    }
    case CostRule::kSort:
      return SortCost(args[0], arena);
    case CostRule::kSortByKeys:
      return SortCost(args[1], arena);
    case CostRule::kAuthorizerCheck:
      return kAuthorizerCheckCost;
    case CostRule::kSelector: {
      uint64_t length = CostSize(args[1]);
      return kListCost + ScaleCost(length, kTraversalFactor) +
             MultiplyCosts(kRequirementCost, ScaleCost(length, kRequirementPerCharacter));
    }
    case CostRule::kTraverseList:
      return TraverseDeep(args[0], arena);
    case CostRule::kReplace:
    case CostRule::kSplit:
    case CostRule::kParseTwice:
      return Traverse(args[0], 2 * kTraversalFactor);
    case CostRule::kJoin:
      return Traverse(result, 2 * kTraversalFactor);
    case CostRule::kContainsIp:
      return ContainsAddress(overload, args, false);
    case CostRule::kContainsCidr:
      return ContainsAddress(overload, args, true);
    case CostRule::kValidateFormat:
      // The format's cost size is the longest pattern that it stands for.
      return MultiplyCosts(ScaleCost(CostSize(args[1]) + 1, kTraversalFactor),
                           ScaleCost(CostSize(args[0]), kPatternFactor));
    case CostRule::kOne:
    case CostRule::kConcatLists:
    case CostRule::kDyn:
    case CostRule::kNominal:
      break;
  }
  return 1;
}

}  // namespace keelson::cel
