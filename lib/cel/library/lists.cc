// cel-go's list extension.
#include <algorithm>

#include <fmt/format.h>

#include "lib/cel/library/library.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

std::vector<Value> Items(const ListValue& list, Arena& arena) {
  std::vector<Value> out;
  out.reserve(list.Size());
  for (size_t i = 0; i < list.Size(); ++i) out.push_back(list.At(i, arena));
  return out;
}

// 0, 1, ..., without storing them.
class Range : public ListValue {
 public:
  explicit Range(size_t size) : size_(size) {}
  size_t Size() const override { return size_; }
  Value At(size_t index, Arena&) const override { return Value::Int(static_cast<int64_t>(index)); }

 private:
  size_t size_;
};

class Reversed : public ListValue {
 public:
  explicit Reversed(const ListValue& list) : list_(list) {}
  size_t Size() const override { return list_.Size(); }
  Value At(size_t index, Arena& arena) const override { return list_.At(list_.Size() - 1 - index, arena); }

 private:
  const ListValue& list_;
};

Value Slice(Args args, Arena& arena) {
  int64_t start = args[1].as_int(), end = args[2].as_int(),
          size = static_cast<int64_t>(args[0].list().Size());
  auto refuse = [&](std::string_view why) {
    return Value::Error(fmt::format("cannot slice({}, {}), {}", start, end, why), arena);
  };
  if (start < 0 || end < 0) return refuse("negative indexes not supported");
  if (start > end) return refuse("start index must be less than or equal to end index");
  if (size < end) return refuse(fmt::format("list is length {}", size));
  std::vector<Value> out;
  for (int64_t i = start; i < end; ++i) out.push_back(args[0].list().At(static_cast<size_t>(i), arena));
  return MakeList(out, arena);
}

void FlattenInto(const ListValue& list, int64_t depth, std::vector<Value>& out, Arena& arena) {
  for (const Value& item : Items(list, arena)) {
    if (item.Is(ValueKind::kList) && depth > 0) {
      FlattenInto(item.list(), depth - 1, out, arena);
    } else {
      out.push_back(item);
    }
  }
}

Value Flatten(Args args, Arena& arena) {
  int64_t depth = args.size() > 1 ? args[1].as_int() : 1;
  if (depth < 0) return Value::StaticError("level must be non-negative");
  std::vector<Value> out;
  FlattenInto(args[0].list(), depth, out, arena);
  return MakeList(out, arena);
}

Value MakeRange(Args args, Arena& arena) {
  return Value::List(arena.New<Range>(static_cast<size_t>(std::max<int64_t>(args[0].as_int(), 0))));
}

Value Reverse(Args args, Arena& arena) { return Value::List(arena.New<Reversed>(args[0].list())); }

Value Distinct(Args args, Arena& arena) {
  std::vector<Value> out;
  for (const Value& item : Items(args[0].list(), arena)) {
    bool known =
        std::any_of(out.begin(), out.end(), [&](const Value& seen) { return Equals(seen, item, arena); });
    if (!known) out.push_back(item);
  }
  return MakeList(out, arena);
}

// The order of the keys; an error value when they have none.
Value OrderOf(const std::vector<Value>& keys, std::vector<size_t>& order) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].IsError()) return keys[i];
    if (Compare(keys[0], keys[0]) == Ordering::kIncomparable) {
      return Value::StaticError("list elements must be comparable");
    }
    if (keys[i].kind() != keys[0].kind()) return Value::StaticError("list elements must have the same type");
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return Compare(keys[a], keys[b]) == Ordering::kLess; });
  return Value();
}

Value SortedBy(const std::vector<Value>& items, const std::vector<Value>& keys, Arena& arena) {
  std::vector<size_t> order;
  Value error = OrderOf(keys, order);
  if (error.IsError()) return error;
  std::vector<Value> out;
  for (size_t i : order) out.push_back(items[i]);
  return MakeList(out, arena);
}

Value Sort(Args args, Arena& arena) {
  std::vector<Value> items = Items(args[0].list(), arena);
  return SortedBy(items, items, arena);
}

Value SortByKeys(Args args, Arena& arena) {
  std::vector<Value> items = Items(args[0].list(), arena), keys = Items(args[1].list(), arena);
  if (items.size() != keys.size()) {
    return Value::Error(fmt::format("@sortByAssociatedKeys() expected a list of the same size as the "
                                    "associated keys list: got {} and {} elements respectively",
                                    items.size(), keys.size()),
                        arena);
  }
  return SortedBy(items, keys, arena);
}

#define KEELSON_CEL_SORT(TYPE, WORD)                                                                       \
  {"sort", "list_" WORD "_sort", "list<" TYPE ">", "", "list<" TYPE ">", 34, Sort, CostRule::kSort}, {     \
    "@sortByAssociatedKeys", "list_" WORD "_sortByAssociatedKeys", "list<T>", "list<" TYPE ">", "list<T>", \
        34, SortByKeys, CostRule::kSortByKeys                                                              \
  }

const FunctionRow kListRows[] = {
    {"slice", "list_slice", "list<T>", "int,int", "list<T>", 34, Slice, CostRule::kListOfResult},
    {"flatten", "list_flatten", "list<list<T>>", "", "list<T>", 34, Flatten, CostRule::kFlatten},
    {"flatten", "list_flatten_int", "list<dyn>", "int", "list<dyn>", 34, Flatten, CostRule::kFlatten},
    {"lists.range", "lists_range", "", "int", "list<int>", 34, MakeRange, CostRule::kListOfResult},
    {"reverse", "list_reverse", "list<T>", "", "list<T>", 34, Reverse, CostRule::kListOfResult},
    {"distinct", "list_distinct", "list<T>", "", "list<T>", 34, Distinct, CostRule::kSort},
    KEELSON_CEL_SORT("int", "int"),
    KEELSON_CEL_SORT("uint", "uint"),
    KEELSON_CEL_SORT("double", "double"),
    KEELSON_CEL_SORT("bool", "bool"),
    KEELSON_CEL_SORT("duration", "google.protobuf.Duration"),
    KEELSON_CEL_SORT("timestamp", "google.protobuf.Timestamp"),
    KEELSON_CEL_SORT("string", "string"),
    KEELSON_CEL_SORT("bytes", "bytes"),
};

}  // namespace

std::span<const FunctionRow> ListFunctions() { return kListRows; }

}  // namespace keelson::cel
