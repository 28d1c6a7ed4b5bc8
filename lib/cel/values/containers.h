// Lists and maps that expressions make.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/cel/values/value.h"

namespace keelson::cel {

class ArrayList : public ListValue {
 public:
  explicit ArrayList(std::span<const Value> items, const DeclType* declared = nullptr)
      : items_(items), declared_(declared) {}
  size_t Size() const override { return items_.size(); }
  Value At(size_t index, Arena&) const override { return items_[index]; }
  const DeclType* declared() const override { return declared_; }

 private:
  std::span<const Value> items_;
  const DeclType* declared_;
};

// The list that a macro fills: nothing else sees it before it is complete.
class GrowingList : public ListValue {
 public:
  size_t Size() const override { return items_.size(); }
  Value At(size_t index, Arena&) const override { return items_[index]; }
  void Append(Value value) { items_.push_back(value); }

 private:
  std::vector<Value> items_;
};

// Of lists that a declaration makes sets or map lists, of one size.
bool EqualUnordered(const ListValue& a, const ListValue& b, const DeclType& declared, Arena& arena);
Value MakeList(std::span<const Value> items, Arena& arena);
Value Concatenate(const Value& a, const Value& b, Arena& arena);  // lists; sets and map lists merge

// A map of an expression's own. Lookups by int, uint and double find keys of equal value.
class HashMap : public MapValue {
 public:
  HashMap() = default;
  size_t Size() const override { return entries_.size(); }
  bool Find(const Value& key, Value& out, Arena& arena) const override;
  Value KeyAt(size_t index, Arena&) const override { return entries_[index].first; }
  Value ValueAt(size_t index, Arena&) const override { return entries_[index].second; }
  bool Insert(Value key, Value value);  // false if the key is there already
  void Reserve(size_t size) { entries_.reserve(size); }

 private:
  std::ptrdiff_t IndexOf(const Value& key) const;

  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_map<size_t, std::vector<uint32_t>> index_;  // when there are more than a few
};

// bool, int, uint and string.
bool IsMapKey(const Value& value);

// What an expression made of a declared type: Object{...}.
class StructValue : public HashMap {
 public:
  explicit StructValue(Type type) : type_(type) {}
  Type type() const override { return type_; }

 private:
  Type type_;
};

}  // namespace keelson::cel
