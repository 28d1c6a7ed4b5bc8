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

bool IsNumber(const Value& value) {
  return value.Is(ValueKind::kInt) || value.Is(ValueKind::kUint) || value.Is(ValueKind::kDouble);
}

double ToDouble(const Value& number) {
  switch (number.kind()) {
    case ValueKind::kInt:
      return static_cast<double>(number.as_int());
    case ValueKind::kUint:
      return static_cast<double>(number.as_uint());
    default:
      return number.as_double();
  }
}

// Equal values have equal texts; others seldom.
std::string TextOf(const Value& value) {
  return IsNumber(value) ? FormatDouble(ToDouble(value)) : ToText(value);
}

// Finds the element of a set or map list that another one is or replaces, without looking at all of them.
class ElementIndex {
 public:
  ElementIndex(const DeclType& declared, Arena& arena) : declared_(declared), arena_(arena) {}

  // The position in `items`, -1 if there is none.
  std::ptrdiff_t Find(const std::vector<Value>& items, const Value& wanted) const {
    auto found = positions_.find(Identity(wanted));
    if (found == positions_.end()) return -1;
    for (uint32_t i : found->second) {
      bool same =
          IsSet() ? Equals(items[i], wanted, arena_) : SameMapKeys(items[i], wanted, declared_, arena_);
      if (same) return i;
    }
    return -1;
  }
  void Add(const Value& element, size_t position) {
    positions_[Identity(element)].push_back(static_cast<uint32_t>(position));
  }
  bool IsSet() const { return declared_.semantics() == ListSemantics::kSet; }

 private:
  std::string Identity(const Value& element) const {
    if (IsSet() || !element.Is(ValueKind::kMap)) return TextOf(element);
    std::string out;
    for (const std::string& name : declared_.map_keys()) {
      Value key;
      out += element.map().FindEqual(Value::String(name), key, arena_) ? TextOf(key) + "\n" : "\t";
    }
    return out;
  }

  const DeclType& declared_;
  Arena& arena_;
  std::unordered_map<std::string, std::vector<uint32_t>> positions_;
};

// Sets and map lists: elements of `b` join those of `a`.
Value Merge(const ListValue& a, const ListValue& b, const DeclType& declared, Arena& arena) {
  std::vector<Value> items;
  ElementIndex index(declared, arena);
  for (size_t i = 0; i < a.Size(); ++i) {
    items.push_back(a.At(i, arena));
    index.Add(items.back(), i);
  }
  for (size_t i = 0; i < b.Size(); ++i) {
    Value added = b.At(i, arena);
    std::ptrdiff_t same = index.Find(items, added);
    if (same < 0) {
      index.Add(added, items.size());
      items.push_back(added);
    } else if (!index.IsSet()) {
      items[static_cast<size_t>(same)] = added;
    }
  }
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(std::span<const Value>(items)), &declared));
}

}  // namespace

Value MakeList(std::span<const Value> items, Arena& arena) {
  return Value::List(arena.New<ArrayList>(arena.CopySpan<Value>(items)));
}

bool EqualUnordered(const ListValue& a, const ListValue& b, const DeclType& declared, Arena& arena) {
  std::vector<Value> items;
  ElementIndex index(declared, arena);
  for (size_t i = 0; i < a.Size(); ++i) {
    items.push_back(a.At(i, arena));
    index.Add(items.back(), i);
  }
  for (size_t i = 0; i < b.Size(); ++i) {
    Value wanted = b.At(i, arena);
    std::ptrdiff_t found = index.Find(items, wanted);
    if (found < 0 || !Equals(items[static_cast<size_t>(found)], wanted, arena)) return false;
  }
  return true;
}

Value Concatenate(const Value& a, const Value& b, Arena& arena) {
  const ListValue &left = a.list(), &right = b.list();
  const DeclType* declared = left.declared();
  if (declared && declared->semantics() != ListSemantics::kAtomic) {
    return Merge(left, right, *declared, arena);
  }
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
    for (size_t i = 0; i < entries_.size(); ++i) {
      index_[Hash(entries_[i].first)].push_back(static_cast<uint32_t>(i));
    }
  } else if (entries_.size() > kFewEntries) {
    index_[Hash(key)].push_back(static_cast<uint32_t>(entries_.size() - 1));
  }
  return true;
}

}  // namespace keelson::cel
