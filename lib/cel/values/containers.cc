#include "lib/cel/values/containers.h"

#include <cmath>

#include "lib/cel/types/decl_type.h"

namespace keelson::cel {
namespace {

constexpr size_t kFewEntries = 8;

size_t Hash(const Value& key) {
  switch (key.kind()) {
    case ValueKind::kString:
      return std::hash<std::string_view>()(key.text());
    case ValueKind::kBool:
      return key.as_bool() ? 1 : 2;
    case ValueKind::kDouble:
      return std::hash<int64_t>()(static_cast<int64_t>(key.as_double()));
    default:
      return std::hash<int64_t>()(key.as_int());
  }
}

// Doubles that are whole numbers of an int or uint; others are no key.
bool IsLookupKey(const Value& key) {
  if (IsMapKey(key)) return true;
  if (!key.Is(ValueKind::kDouble)) return false;
  double d = key.as_double();
  return std::floor(d) == d && d >= -9223372036854775808.0 && d < 9223372036854775808.0;
}

bool SameKey(const Value& a, const Value& b) {
  if (a.Is(ValueKind::kString) && b.Is(ValueKind::kString)) return a.text() == b.text();
  return Compare(a, b) == Ordering::kEqual;
}

// The value of the element that identifies it in a list of x-kubernetes-list-type=map.
bool SameMapKeys(const Value& a, const Value& b, const DeclType& declared, Arena& arena) {
  if (!a.Is(ValueKind::kMap) || !b.Is(ValueKind::kMap)) return false;
  const DeclType& element = *declared.element();
  for (const std::string& name : declared.map_keys()) {
    const DeclField* field = element.FindJsonField(name);
    Value key =
        Value::String(field && !field->name.empty() ? std::string_view(field->name) : std::string_view(name));
    Value left, right;
    bool has_left = a.map().Find(key, left, arena), has_right = b.map().Find(key, right, arena);
    if (has_left != has_right || (has_left && !Equals(left, right, arena))) return false;
  }
  return true;
}

// Sets and map lists: elements of `b` join those of `a`.
Value Merge(const ListValue& a, const ListValue& b, const DeclType& declared, Arena& arena) {
  std::vector<Value> items;
  for (size_t i = 0; i < a.Size(); ++i) items.push_back(a.At(i, arena));
  bool set = declared.semantics() == ListSemantics::kSet;
  for (size_t i = 0; i < b.Size(); ++i) {
    Value added = b.At(i, arena);
    Value* same = nullptr;
    for (Value& item : items) {
      if (set ? Equals(item, added, arena) : SameMapKeys(item, added, declared, arena)) {
        same = &item;
        break;
      }
    }
    if (!same) {
      items.push_back(added);
    } else if (!set) {
      *same = added;
    }
  }
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(std::span<const Value>(items)), &declared));
}

}  // namespace

Value MakeList(std::span<const Value> items, Arena& arena) {
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(items)));
}

Value Concatenate(const Value& a, const Value& b, Arena& arena) {
  const ListValue &left = a.list(), &right = b.list();
  const DeclType* declared = left.declared();
  if (declared && declared->semantics() != ListSemantics::kAtomic)
    return Merge(left, right, *declared, arena);
  std::vector<Value> items;
  items.reserve(left.Size() + right.Size());
  for (size_t i = 0; i < left.Size(); ++i) items.push_back(left.At(i, arena));
  for (size_t i = 0; i < right.Size(); ++i) items.push_back(right.At(i, arena));
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(std::span<const Value>(items)), declared));
}

bool IsMapKey(const Value& value) {
  return value.Is(ValueKind::kString) || value.Is(ValueKind::kInt) || value.Is(ValueKind::kUint) ||
         value.Is(ValueKind::kBool);
}

std::ptrdiff_t HashMap::IndexOf(const Value& key) const {
  if (!IsLookupKey(key)) return -1;
  if (entries_.size() <= kFewEntries) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (SameKey(entries_[i].first, key)) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }
  auto found = index_.find(Hash(key));
  if (found == index_.end()) return -1;
  for (uint32_t i : found->second) {
    if (SameKey(entries_[i].first, key)) return i;
  }
  return -1;
}

bool HashMap::Find(const Value& key, Value& out, Arena&) const {
  std::ptrdiff_t at = IndexOf(key);
  if (at < 0) return false;
  out = entries_[static_cast<size_t>(at)].second;
  return true;
}

bool HashMap::Insert(Value key, Value value) {
  if (IndexOf(key) >= 0) return false;
  entries_.emplace_back(key, value);
  if (entries_.size() == kFewEntries + 1) {
    for (size_t i = 0; i < entries_.size(); ++i)
      index_[Hash(entries_[i].first)].push_back(static_cast<uint32_t>(i));
  } else if (entries_.size() > kFewEntries) {
    index_[Hash(key)].push_back(static_cast<uint32_t>(entries_.size() - 1));
  }
  return true;
}

}  // namespace keelson::cel
