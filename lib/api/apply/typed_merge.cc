// Merges documents, and checks them against a Shape.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "lib/api/apply/typed_items.h"
#include "lib/api/codec/json_text.h"

namespace keelson::api {
namespace {

using json::value;

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

std::string ScalarText(const value& v) {
  std::string out;
  Sink sink(out);
  if (const auto* text = v.if_string()) {
    AppendQuoted({text->data(), text->size()}, sink);
  } else if (const auto* number = v.if_double()) {
    AppendDouble(*number, sink);
  } else {
    sink.Append(json::serialize(v));
  }
  sink.Finish();
  return out;
}

Error BadItem(std::string why) { return Error(Code::kBadRequest, std::move(why)); }

// ---- CheckShape ----

// Prints a value as Go's %v does.
std::string GoText(const value& v) {
  if (const auto* text = v.if_string()) return std::string(text->data(), text->size());
  if (const auto* list = v.if_array()) {
    std::string out = "[";
    for (const value& item : *list) out += (out.size() > 1 ? " " : "") + GoText(item);
    return out + "]";
  }
  if (const auto* map = v.if_object()) {
    std::set<std::string> members;
    for (const auto& member : *map) {
      members.insert(std::string(View(member.key())) + ":" + GoText(member.value()));
    }
    return fmt::format("map[{}]", fmt::join(members, " "));
  }
  return v.is_null() ? "<nil>" : ScalarText(v);
}

const char* GoTypeName(const value& v) {
  if (v.is_string()) return "string";
  if (v.is_bool()) return "bool";
  if (v.is_double()) return "float64";
  if (v.is_array()) return "[]interface {}";
  if (v.is_object()) return "map[string]interface {}";
  return "int64";
}

class Checker {
 public:
  explicit Checker(bool allow_duplicates) : allow_duplicates_(allow_duplicates) {}

  void Check(const Shape& shape, const value& v, const std::string& path) {
    if (v.is_null()) return;
    switch (shape.kind) {
      case Shape::Kind::kAny:
        return;
      case Shape::Kind::kScalar:
        return Scalar(shape.scalar, v, path);
      case Shape::Kind::kList:
        if (!v.is_array()) return Add(path, "expected list, got &{" + GoText(v) + "}");
        return List(shape, v.get_array(), path);
      case Shape::Kind::kMap:
        if (!v.is_object() && shape.deduced) return;
        if (!v.is_object()) return Add(path, "expected map, got &{" + GoText(v) + "}");
        return Map(shape, v.get_object(), path);
    }
  }

  std::vector<std::string> problems;

 private:
  void Add(const std::string& path, std::string_view what) {
    problems.push_back(path.empty() ? std::string(what) : fmt::format("{}: {}", path, what));
  }

  void Scalar(Shape::Scalar type, const value& v, const std::string& path) {
    switch (type) {
      case Shape::Scalar::kString:
        if (v.is_string()) return;
        return Add(path, "expected string, got &value.valueUnstructured{Value:" + GoText(v) + "}");
      case Shape::Scalar::kNumber:
        if (v.is_number()) return;
        return Add(path, fmt::format("expected numeric (int or float), got {}", GoTypeName(v)));
      case Shape::Scalar::kBool:
        if (v.is_bool()) return;
        return Add(path, "expected boolean, got &{" + GoText(v) + "}");
      case Shape::Scalar::kAny:
        if (v.is_array() || v.is_object()) return Add(path, "expected any scalar, got &{" + GoText(v) + "}");
    }
  }

  void List(const Shape& shape, const json::array& list, const std::string& path) {
    std::set<std::string> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      std::string inner = fmt::format("{}[{}]", path, i);
      if (!shape.atomic) {
        Result<std::string> step = ItemStep(shape, list[i]);
        if (!step) return Add(path, fmt::format("element {}: {}", i, step.error().message()));
        if (!seen.insert(*step).second && !allow_duplicates_) {
          return Add(path, "duplicate entries for key " + PrintStep(*step));
        }
        inner = path + PrintStep(*step);
      }
      Check(*shape.element, list[i], inner);
    }
  }

  void Map(const Shape& shape, const json::object& map, const std::string& path) {
    for (const auto& member : map) {
      const Shape::Field* field = shape.Find(View(member.key()));
      const Shape* type = field ? field->shape : shape.element;
      std::string inner = fmt::format("{}.{}", path, View(member.key()));
      if (!type) return Add(inner, "field not declared in schema");
      Check(*type, member.value(), inner);
    }
  }

  const bool allow_duplicates_;
};

// ---- MergeShaped ----

bool Merge(const Shape& shape, const value* live, const value* config, value& out);

struct Items {
  std::vector<std::string> steps;
  std::vector<const value*> values;
  const value* Find(const std::string& step) const {
    const value* found = nullptr;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] != step) continue;
      // Duplicate items are replaced, not merged.
      static const value null;
      if (found) return &null;
      found = values[i];
    }
    return found;
  }
};

Items ItemsOf(const Shape& shape, const value* list) {
  Items items;
  if (!list || !list->is_array()) return items;
  for (const value& item : list->get_array()) {
    items.steps.push_back(ItemStep(shape, item).value_or("i:0"));
    items.values.push_back(&item);
  }
  return items;
}

// Merges the items of both. The result keeps the order of `config`; items that only `live` has keep their
// place between the others.
bool MergeLists(const Shape& shape, const value* live, const value* config, value& out) {
  Items left = ItemsOf(shape, live), right = ItemsOf(shape, config);
  std::vector<std::string> shared;  // in the order of `config`
  for (const std::string& step : right.steps) {
    if (left.Find(step)) shared.push_back(step);
  }
  size_t next = 0;
  std::set<std::string> merged;
  json::array items;
  auto add = [&](const value* a, const value* b) {
    value item;
    if (Merge(*shape.element, a, b, item)) items.push_back(std::move(item));
  };
  size_t l = 0, r = 0;
  while (l < left.steps.size() || r < right.steps.size()) {
    if (l < left.steps.size() && r < right.steps.size()) {
      const std::string& step = left.steps[l];
      if (step == right.steps[r]) {
        merged.insert(step);
        add(left.Find(step), right.Find(step));
        ++l, ++r, ++next;
        continue;
      }
      // A shared item whose turn has not come.
      if (right.Find(step) && next < shared.size() && shared[next] != step) {
        ++l;
        continue;
      }
    }
    if (l < left.steps.size()) {
      if (!right.Find(left.steps[l])) {
        add(left.values[l++], nullptr);
        continue;
      }
      if (merged.count(left.steps[l])) ++l;
    }
    if (r < right.steps.size()) {
      const std::string& step = right.steps[r++];
      merged.insert(step);
      add(left.Find(step), right.Find(step));
      if (next < shared.size() && shared[next] == step) ++next;
    }
  }
  if (items.empty()) return false;
  out = std::move(items);
  return true;
}

bool MergeMaps(const Shape& shape, const value* live, const value* config, value& out) {
  const json::object* a = live ? live->if_object() : nullptr;
  const json::object* b = config ? config->if_object() : nullptr;
  json::object map;
  auto member = [&](json::string_view key, const value* x, const value* y) {
    const Shape::Field* field = shape.Find(View(key));
    const Shape* type = field ? field->shape : shape.element;
    value inner;
    if (type && Merge(*type, x, y, inner)) map[key] = std::move(inner);
  };
  if (a) {
    for (const auto& entry : *a) {
      member(entry.key(), &entry.value(), b ? b->if_contains(entry.key()) : nullptr);
    }
  }
  if (b) {
    for (const auto& entry : *b) {
      if (!a || !a->contains(entry.key())) member(entry.key(), nullptr, &entry.value());
    }
  }
  if (map.empty()) return false;
  out = std::move(map);
  return true;
}

bool IsEmpty(const value* v) {
  if (!v || v->is_null()) return true;
  if (const auto* list = v->if_array()) return list->empty();
  const auto* map = v->if_object();
  return map && map->empty();
}

bool IsNoObject(const value* v) { return v && !v->is_object(); }

// False: the result is nothing.
bool Merge(const Shape& shape, const value* live, const value* config, value& out) {
  if (shape.kind == Shape::Kind::kScalar || shape.kind == Shape::Kind::kAny || shape.atomic ||
      (shape.deduced && (IsNoObject(live) || IsNoObject(config))) || (IsEmpty(live) && IsEmpty(config))) {
    if (!live && !config) return false;
    out = config ? *config : *live;
    return true;
  }
  return shape.kind == Shape::Kind::kList ? MergeLists(shape, live, config, out)
                                          : MergeMaps(shape, live, config, out);
}

}  // namespace

Result<std::string> ItemStep(const Shape& list, const value& item) {
  if (list.set) {
    if (item.is_object()) return BadItem("associative list without keys has an element that's a map type");
    if (item.is_array()) return BadItem("not supported: associative list with lists as elements");
    if (item.is_null()) {
      return BadItem("associative list without keys has an element that's an explicit null");
    }
    return ValueStep(ScalarText(item));
  }
  if (item.is_null()) return BadItem("associative list with keys may not have a null element");
  const json::object* map = item.if_object();
  if (!map) return BadItem("associative list with keys may not have non-map elements");
  std::vector<std::pair<std::string_view, std::string>> keys;
  for (const Shape::Key& key : list.keys) {
    const value* found = map->if_contains(json::string_view(key.name.data(), key.name.size()));
    if (found) {
      keys.emplace_back(key.name, ScalarText(*found));
    } else if (!key.default_json.empty()) {
      keys.emplace_back(key.name, key.default_json);
    }
  }
  if (keys.empty()) {
    std::vector<std::string> names;
    for (const Shape::Key& key : list.keys) names.push_back(fmt::format("\"{}\"", key.name));
    return BadItem(
        fmt::format("associative list with keys has an element that omits all key fields [{}] (and doesn't "
                    "have default values for any key fields)",
                    fmt::join(names, " ")));
  }
  return KeyStep(keys);
}

std::vector<std::string> CheckShape(const Shape& shape, const value& v, bool allow_duplicates) {
  Checker checker(allow_duplicates);
  checker.Check(shape, v, "");
  return std::move(checker.problems);
}

value MergeShaped(const Shape& shape, const value& live, const value& config) {
  value out;
  if (!Merge(shape, &live, &config, out)) return json::object();
  return out;
}

}  // namespace keelson::api
