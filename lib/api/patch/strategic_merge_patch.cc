// Strategic merge patch: kubernetes/community,
// contributors/devel/sig-api-machinery/strategic-merge-patch.md. Order of merged lists: items in the patch
// come in the patch's order ($setElementOrder, or else the order of the patched list), items that only the
// server has keep theirs, and the two are interleaved by the server's order.
#include <algorithm>

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/patch/patch.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetOrder = "$setElementOrder/";
constexpr std::string_view kDeletePrimitive = "$deleteFromPrimitiveList/";

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

Error Malformed(std::string message) { return Error(Code::kBadRequest, std::move(message)); }
// Upstream reports these as internal errors.
Error BadPatchType(std::string_view what, const json::object& map) {
  return Error(Code::kInternal, fmt::format("unknown patch type: {} in map: {}", what, PrintGo(map)));
}
Error NoMergeKey(const json::value& item, std::string_view key) {
  return Error(Code::kInternal,
               fmt::format("map: {} does not contain declared merge key: {}", PrintGo(item), key));
}

// The value of a string member, or "".
std::string_view TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? View(value->get_string()) : std::string_view();
}

// The position in `list` of the item that matches `item`: by merge key, or by value.
size_t IndexOf(const json::array& list, const json::value& item, std::string_view key) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (key.empty()) {
      if (list[i] == item) return i;
      continue;
    }
    const json::object *a = list[i].if_object(), *b = item.if_object();
    const json::value *left = a ? a->if_contains(key) : nullptr, *right = b ? b->if_contains(key) : nullptr;
    if (left && right && *left == *right) return i;
  }
  return kNone;
}

void SortBy(std::vector<json::value>& items, const json::array& order, std::string_view key) {
  std::stable_sort(items.begin(), items.end(), [&](const json::value& a, const json::value& b) {
    return IndexOf(order, a, key) < IndexOf(order, b, key);
  });
}

json::array Order(json::array merged, const json::array& patch_order, const json::array& server_order,
                  std::string_view key) {
  std::vector<json::value> patched, server_only;
  for (json::value& item : merged) {
    (IndexOf(patch_order, item, key) != kNone ? patched : server_only).push_back(std::move(item));
  }
  SortBy(patched, patch_order, key);
  SortBy(server_only, server_order, key);
  json::array out;
  size_t i = 0, j = 0;
  while (i < server_only.size() || j < patched.size()) {
    bool server_first = j >= patched.size();
    if (!server_first && i < server_only.size()) {
      size_t left = IndexOf(server_order, server_only[i], key),
             right = IndexOf(server_order, patched[j], key);
      server_first = left != kNone && right != kNone && left < right;
    }
    out.push_back(std::move(server_first ? server_only[i++] : patched[j++]));
  }
  return out;
}

// A patch as a new value, with nothing to merge into: drops directives and nulls.
json::value Stripped(const json::value& patch) {
  if (const json::object* object = patch.if_object()) {
    json::object out;
    for (const auto& member : *object) {
      std::string_view name = View(member.key());
      bool directive = name == kDirective || name == kRetainKeys || name.starts_with(kSetOrder) ||
                       name.starts_with(kDeletePrimitive);
      if (!directive && !member.value().is_null()) out.emplace(member.key(), Stripped(member.value()));
    }
    return out;
  }
  if (const json::array* list = patch.if_array()) {
    json::array out;
    for (const json::value& item : *list) {
      const json::object* object = item.if_object();
      std::string_view directive = object ? TextOf(*object, kDirective) : std::string_view();
      // `$patch: replace` alone in its list, or `$patch: delete` with nothing to delete.
      if (directive == "delete" || (directive == "replace" && object->size() == 1)) continue;
      out.push_back(Stripped(item));
    }
    return out;
  }
  return patch;
}

class Merger {
 public:
  // `type` may be null (free-form). `is_map`: any key has a value of `type`.
  Result<> MergeObject(json::object& original, json::object patch, const TypeView* type, bool is_map);

 private:
  using Field = TypeView::Field;

  Field Find(const TypeView* type, bool is_map, std::string_view name) const {
    Field field;
    if (is_map) {
      field.type = type;
    } else if (type) {
      type->Find(name, field);
    }
    return field;
  }
  Result<> RetainKeys(json::object& original, json::object& patch);
  Result<> OrderedLists(json::object& original, json::object& patch, const TypeView* type, bool is_map);
  Result<> MergeMember(json::object& original, std::string_view name, json::value patch, const TypeView* type,
                       bool is_map);
  Result<json::array> MergeList(const json::array& original, const json::array& patch, const Field& field,
                                std::string_view name);
  Result<> DeletePrimitives(json::object& original, std::string_view name, const json::value& patch);
  Result<> ListDirectives(json::array& original, json::array& patch, std::string_view key);
};

Result<> Merger::MergeObject(json::object& original, json::object patch, const TypeView* type, bool is_map) {
  if (const json::value* directive = patch.if_contains(kDirective)) {
    std::string_view what = directive->is_string() ? View(directive->get_string()) : std::string_view();
    if (what == "replace") {
      patch.erase(kDirective);
      original = Stripped(patch).get_object();
      return {};
    }
    if (what == "delete") {
      original.clear();
      return {};
    }
    if (what != "merge") return BadPatchType(what, patch);
    patch.erase(kDirective);
  }
  KEELSON_RETURN_IF_ERROR(RetainKeys(original, patch));
  KEELSON_RETURN_IF_ERROR(OrderedLists(original, patch, type, is_map));
  for (auto& member : patch) {
    std::string name(View(member.key()));
    if (name.starts_with(kDeletePrimitive)) {
      KEELSON_RETURN_IF_ERROR(
          DeletePrimitives(original, std::string_view(name).substr(kDeletePrimitive.size()), member.value()));
    } else {
      KEELSON_RETURN_IF_ERROR(MergeMember(original, name, std::move(member.value()), type, is_map));
    }
  }
  return {};
}

// Removes the keys that $retainKeys does not list: this is how one-of types switch members.
Result<> Merger::RetainKeys(json::object& original, json::object& patch) {
  const json::value* directive = patch.if_contains(kRetainKeys);
  if (!directive) return {};
  const json::array* list = directive->if_array();
  if (!list) return Malformed("invalid patch format of retainKeys");
  json::array retained = *list;
  patch.erase(kRetainKeys);
  auto keeps = [&](json::string_view name) {
    return std::any_of(retained.begin(), retained.end(), [&](const json::value& item) {
      return item.is_string() && json::string_view(item.get_string()) == name;
    });
  };
  for (const auto& member : patch) {
    if (!member.value().is_null() && !View(member.key()).starts_with("$") && !keeps(member.key())) {
      return Error(Code::kInvalid, "the server rejected our request due to an error in our request")
          .WithDetails({});
    }
  }
  std::vector<std::string> gone;
  for (const auto& member : original) {
    if (!keeps(member.key())) gone.emplace_back(View(member.key()));
  }
  for (const std::string& name : gone) original.erase(name);
  return {};
}

// Merges and sorts the lists that have a $setElementOrder, and removes them from `patch`.
Result<> Merger::OrderedLists(json::object& original, json::object& patch, const TypeView* type,
                              bool is_map) {
  std::vector<std::string> names;
  for (const auto& member : patch) {
    if (View(member.key()).starts_with(kSetOrder)) {
      names.emplace_back(View(member.key()).substr(kSetOrder.size()));
    }
  }
  for (const std::string& name : names) {
    std::string directive = std::string(kSetOrder) + name;
    const json::array* given = patch.at(directive).if_array();
    if (!given) return Malformed("invalid patch format of setElementOrder list");
    json::array order = *given;
    patch.erase(directive);
    Field field = Find(type, is_map, name);
    json::value *from = original.if_contains(name), *changes = patch.if_contains(name);
    if ((from && !from->is_array()) || (changes && !changes->is_array())) continue;
    if (!from && !changes) continue;
    json::array server = from ? from->get_array() : json::array(), merged;
    if (from && changes) {
      KEELSON_ASSIGN_OR_RETURN(merged, MergeList(server, changes->get_array(), field, name));
    } else if (from) {
      merged = server;
    } else {
      merged = Stripped(*changes).get_array();
    }
    if (changes) patch.erase(name);
    original.insert_or_assign(name, Order(std::move(merged), order, server, field.merge_key));
  }
  return {};
}

Result<> Merger::DeletePrimitives(json::object& original, std::string_view name, const json::value& patch) {
  const json::array* gone = patch.if_array();
  if (!gone) return Malformed("invalid patch format of primitive list");
  json::value* from = original.if_contains(name);
  if (!from || !from->is_array()) return {};
  json::array kept;
  for (json::value& item : from->get_array()) {
    if (std::find(gone->begin(), gone->end(), item) == gone->end()) kept.push_back(std::move(item));
  }
  *from = std::move(kept);
  return {};
}

Result<> Merger::MergeMember(json::object& original, std::string_view name, json::value patch,
                             const TypeView* type, bool is_map) {
  if (patch.is_null()) {
    original.erase(name);
    return {};
  }
  Field field = Find(type, is_map, name);
  json::value* from = original.if_contains(name);
  if (from && from->is_object() && patch.is_object() && !field.replace) {
    return MergeObject(from->get_object(), std::move(patch.get_object()), field.type, field.map);
  }
  if (from && from->is_array() && patch.is_array() && field.merge) {
    KEELSON_ASSIGN_OR_RETURN(json::array merged,
                             MergeList(from->get_array(), patch.get_array(), field, name));
    *from = std::move(merged);
    return {};
  }
  original.insert_or_assign(name, Stripped(patch));
  return {};
}

// Executes the directives among the items of `patch`, and removes them.
Result<> Merger::ListDirectives(json::array& original, json::array& patch, std::string_view key) {
  json::array rest;
  bool replace = false;
  for (json::value& item : patch) {
    json::object* object = item.if_object();
    if (!object || !object->contains(kDirective)) {
      rest.push_back(std::move(item));
      continue;
    }
    std::string_view what = TextOf(*object, kDirective);
    if (what == "replace") {
      replace = true;
      object->erase(kDirective);
      if (!object->empty()) rest.push_back(std::move(item));
    } else if (what == "delete") {
      if (!object->contains(key)) {
        return NoMergeKey(item, key);
      }
      for (size_t at = IndexOf(original, item, key); at != kNone; at = IndexOf(original, item, key)) {
        original.erase(original.begin() + static_cast<std::ptrdiff_t>(at));
      }
    } else if (what == "merge") {
      return Error(Code::kInternal, "merging lists cannot yet be specified in the patch");
    } else {
      return BadPatchType(what, *object);
    }
  }
  if (replace) original.clear();
  patch = std::move(rest);
  return {};
}

Result<json::array> Merger::MergeList(const json::array& original, const json::array& changes,
                                      const Field& field, std::string_view name) {
  json::array merged = original, patch = changes;
  auto is_object = [](const json::value& item) { return item.is_object(); };
  bool objects = std::any_of(patch.begin(), patch.end(), is_object) ||
                 std::any_of(merged.begin(), merged.end(), is_object);
  if (!objects) {
    for (const json::value& item : patch) {
      if (IndexOf(merged, item, "") == kNone) merged.push_back(item);
    }
    return Order(std::move(merged), patch, original, "");
  }
  std::string_view key = field.merge_key;
  if (!field.merge || key.empty()) {
    if (field.merge) return Malformed(fmt::format("cannot merge lists without merge key for {}", name));
    return Stripped(patch).get_array();
  }
  KEELSON_RETURN_IF_ERROR(ListDirectives(merged, patch, key));
  for (json::value& item : patch) {
    if (!item.is_object() || !item.get_object().contains(key)) {
      return NoMergeKey(item, key);
    }
    size_t at = IndexOf(merged, item, key);
    if (at == kNone) {
      merged.push_back(Stripped(item));
    } else if (merged[at].is_object()) {
      KEELSON_RETURN_IF_ERROR(MergeObject(merged[at].get_object(), item.get_object(), field.type, false));
    }
  }
  return Order(std::move(merged), patch, original, key);
}

}  // namespace

Result<json::value> ApplyStrategicMergePatch(json::value document, const json::value& patch,
                                             const TypeView& type) {
  if (!patch.is_object()) return Malformed("invalid JSON document");
  if (!document.is_object()) document.emplace_object();
  KEELSON_RETURN_IF_ERROR(Merger().MergeObject(document.get_object(), patch.get_object(), &type, false));
  return document;
}

}  // namespace keelson::api
