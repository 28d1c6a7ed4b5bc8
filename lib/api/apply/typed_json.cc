// Shapes over JSON documents: fields, differences, removal.
#include <algorithm>
#include <map>

#include <boost/json/serialize.hpp>

#include "lib/api/apply/typed.h"
#include "lib/api/apply/typed_items.h"

namespace keelson::api {
namespace {

using json::value;

bool IsEmpty(const value* v) {
  if (!v || v->is_null()) return true;
  if (const auto* list = v->if_array()) return list->empty();
  const auto* map = v->if_object();
  return map && map->empty();
}

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

// Whether a value of this shape changes as a whole.
bool IsWhole(const Shape& shape, const value& v) {
  return shape.kind == Shape::Kind::kScalar || shape.kind == Shape::Kind::kAny || shape.atomic ||
         (shape.deduced && !v.is_object());
}

// ---- FieldsOf ----

FieldSet Fields(const Shape& shape, const value& v, bool& self);

void ListFields(const Shape& shape, const json::array& list, FieldSet& out) {
  std::map<std::string, std::pair<const value*, int>> items;
  for (const value& item : list) {
    auto& [first, count] = items[ItemStep(shape, item).value_or("i:0")];
    if (count++ == 0) first = &item;
  }
  for (auto& [step, item] : items) {
    bool self = false;
    FieldSet below;
    if (item.second == 1) below = Fields(*shape.element, *item.first, self);
    out.Append(step, true, std::move(below));
  }
  out.Sort();
}

// The paths below a value; `self`: the value itself counts.
FieldSet Fields(const Shape& shape, const value& v, bool& self) {
  FieldSet out;
  self = IsWhole(shape, v);
  if (self) return out;
  if (const auto* list = v.if_array()) ListFields(shape, *list, out);
  const auto* map = v.if_object();
  if (!map) return out;
  for (const auto& member : *map) {
    const Shape::Field* field = shape.Find(View(member.key()));
    const Shape* type = field ? field->shape : shape.element;
    if (!type) continue;
    bool named = false;
    FieldSet below = Fields(*type, member.value(), named);
    const auto* inner = member.value().if_object();
    if (!field || member.value().is_null() || (inner && inner->empty())) named = true;
    out.Append(FieldStep(View(member.key())), named, std::move(below));
  }
  out.Sort();
  return out;
}

// ---- CompareJson ----

enum class Fate { kNone, kAdded, kModified, kRemoved };

Fate Compare(const Shape& shape, const value* before, const value* after, Comparison& out);

void Attach(const std::string& step, Fate fate, Comparison& below, Comparison& out) {
  out.added.Append(step, fate == Fate::kAdded, std::move(below.added));
  out.modified.Append(step, fate == Fate::kModified, std::move(below.modified));
  out.removed.Append(step, fate == Fate::kRemoved, std::move(below.removed));
}

Fate Leaf(const value* before, const value* after) {
  if (!before) return Fate::kAdded;
  if (!after) return Fate::kRemoved;
  return SameJson(*before, *after) ? Fate::kNone : Fate::kModified;
}

using Run = std::vector<const value*>;

void CompareRuns(const Shape& element, const std::string& step, const Run& before, const Run& after,
                 Comparison& out) {
  Comparison below;
  Fate fate = Fate::kNone;
  if (before.size() <= 1 && after.size() <= 1) {
    fate = Compare(element, before.empty() ? nullptr : before[0], after.empty() ? nullptr : after[0], below);
  } else if (before.size() >= 2 && after.size() >= 2) {
    bool same = std::equal(before.begin(), before.end(), after.begin(), after.end(),
                           [](const value* a, const value* b) { return SameJson(*a, *b); });
    if (!same) fate = Fate::kModified;
  } else if (before.size() >= 2) {
    if (!after.empty() && Compare(element, nullptr, after[0], below) == Fate::kAdded) {
      out.added.Append(step, true, std::move(below.added));
    }
    below = {};
    fate = Fate::kRemoved;
  } else {
    if (!before.empty() && Compare(element, before[0], nullptr, below) == Fate::kRemoved) {
      out.removed.Append(step, true, std::move(below.removed));
    }
    below = {};
    fate = Fate::kAdded;
  }
  Attach(step, fate, below, out);
}

void CompareLists(const Shape& shape, const value* before, const value* after, Comparison& out) {
  std::map<std::string, std::pair<Run, Run>> items;
  if (const auto* list = before ? before->if_array() : nullptr) {
    for (const value& item : *list) items[ItemStep(shape, item).value_or("i:0")].first.push_back(&item);
  }
  if (const auto* list = after ? after->if_array() : nullptr) {
    for (const value& item : *list) items[ItemStep(shape, item).value_or("i:0")].second.push_back(&item);
  }
  for (const auto& [step, runs] : items) CompareRuns(*shape.element, step, runs.first, runs.second, out);
}

void CompareMaps(const Shape& shape, const value* before, const value* after, Comparison& out) {
  const json::object* a = before ? before->if_object() : nullptr;
  const json::object* b = after ? after->if_object() : nullptr;
  auto member = [&](json::string_view key, const value* x, const value* y) {
    const Shape::Field* field = shape.Find(View(key));
    const Shape* type = field ? field->shape : shape.element;
    if (!type) return;
    Comparison below;
    Fate fate = Compare(*type, x, y, below);
    Attach(FieldStep(View(key)), fate, below, out);
  };
  if (a) {
    for (const auto& entry : *a) {
      member(entry.key(), &entry.value(), b ? b->if_contains(entry.key()) : nullptr);
    }
  }
  if (!b) return;
  for (const auto& entry : *b) {
    if (!a || !a->contains(entry.key())) member(entry.key(), nullptr, &entry.value());
  }
}

Fate Compare(const Shape& shape, const value* before, const value* after, Comparison& out) {
  if ((before && IsWhole(shape, *before)) || (after && IsWhole(shape, *after)) ||
      (IsEmpty(before) && IsEmpty(after))) {
    return Leaf(before, after);
  }
  if (shape.kind == Shape::Kind::kList) {
    CompareLists(shape, before, after, out);
  } else {
    CompareMaps(shape, before, after, out);
  }
  out.added.Sort();
  out.modified.Sort();
  out.removed.Sort();
  return !before ? Fate::kAdded : !after ? Fate::kRemoved : Fate::kNone;
}

// ---- RemoveFields, ExtractFields ----

value Carve(const Shape& shape, const value& v, const FieldSet& fields, bool extract);

bool Names(const FieldSet& fields, const std::string& step) { return fields.Has({step}); }

value CarveList(const Shape& shape, const json::array& list, const FieldSet& fields, bool extract) {
  json::array out;
  for (const value& item : list) {
    std::string step = ItemStep(shape, item).value_or("i:0");
    const FieldSet* below = fields.Below(step);
    bool named = Names(fields, step);
    if (extract ? !named && !below : named) continue;
    out.push_back(below ? Carve(*shape.element, item, *below, extract) : item);
  }
  return out.empty() ? value() : value(std::move(out));
}

value CarveMap(const Shape& shape, const json::object& map, const FieldSet& fields, bool extract) {
  json::object out;
  for (const auto& member : map) {
    std::string step = FieldStep(View(member.key()));
    const Shape::Field* field = shape.Find(View(member.key()));
    const Shape* type = field ? field->shape : shape.element;
    if (!type) continue;
    const FieldSet* below = fields.Below(step);
    if (Names(fields, step)) {
      if (extract) out[member.key()] = Carve(*type, member.value(), below ? *below : FieldSet(), true);
      continue;
    }
    if (below) {
      out[member.key()] = Carve(*type, member.value(), *below, extract);
    } else if (!extract) {
      out[member.key()] = member.value();
    }
  }
  return out.empty() ? value() : value(std::move(out));
}

// Null when nothing is left.
value Carve(const Shape& shape, const value& v, const FieldSet& fields, bool extract) {
  if (shape.kind == Shape::Kind::kScalar) return v;
  if ((shape.kind == Shape::Kind::kAny || shape.deduced) && !v.is_array() && !v.is_object()) return v;
  if (IsEmpty(&v)) return nullptr;
  if (IsWhole(shape, v)) return extract ? v : value();
  if (const auto* list = v.if_array()) {
    return shape.kind == Shape::Kind::kList ? CarveList(shape, *list, fields, extract) : value();
  }
  const auto* map = v.if_object();
  return map && shape.kind == Shape::Kind::kMap ? CarveMap(shape, *map, fields, extract) : value();
}

void AddNamed(const Shape* shape, FieldSet& fields) {
  for (FieldSet::Node& node : fields.mutable_nodes()) {
    if (node.below.Empty()) continue;
    const Shape* inner = nullptr;
    if (shape && IsFieldStep(node.step) && shape->kind == Shape::Kind::kMap) {
      const Shape::Field* field = shape->Find(StepName(node.step));
      if (field) node.member = true;
      inner = field ? field->shape : shape->element;
    } else if (shape && shape->kind == Shape::Kind::kList) {
      inner = shape->element;
    }
    AddNamed(inner, node.below);
  }
}

bool SameNumber(const value& a, const value& b) {
  if (a.is_double() || b.is_double()) return a.to_number<double>() == b.to_number<double>();
  return a == b;
}

}  // namespace

FieldSet FieldsOf(const Shape& shape, const value& v) {
  bool self = false;
  return Fields(shape, v, self);
}

Comparison CompareJson(const Shape& shape, const value& before, const value& after) {
  Comparison out;
  Compare(shape, &before, &after, out);
  return out;
}

value RemoveFields(const Shape& shape, const value& v, const FieldSet& fields) {
  value out = Carve(shape, v, fields, false);
  return out.is_null() ? value(json::object()) : out;
}

value ExtractFields(const Shape& shape, const value& v, const FieldSet& fields) {
  value out = Carve(shape, v, fields, true);
  return out.is_null() ? value(json::object()) : out;
}

FieldSet WithNamedFields(const Shape& shape, const FieldSet& fields) {
  FieldSet out = fields;
  AddNamed(&shape, out);
  return out;
}

bool SameJson(const value& a, const value& b) {
  if (a.is_number() && b.is_number()) return SameNumber(a, b);
  if (a.kind() != b.kind()) return false;
  if (const auto* list = a.if_array()) {
    const auto& other = b.get_array();
    return std::equal(list->begin(), list->end(), other.begin(), other.end(), SameJson);
  }
  const auto* map = a.if_object();
  if (!map) return a == b;
  const auto& other = b.get_object();
  if (map->size() != other.size()) return false;
  for (const auto& member : *map) {
    const value* theirs = other.if_contains(member.key());
    if (!theirs || !SameJson(member.value(), *theirs)) return false;
  }
  return true;
}

}  // namespace keelson::api
