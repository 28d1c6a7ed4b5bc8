#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "lib/api/patch/patch.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr size_t kMaxCopiedBytes = 3 << 20;

std::string_view View(const json::string& text) { return {text.data(), text.size()}; }

Error Malformed(std::string message) { return Error(Code::kBadRequest, std::move(message)); }
Error DoesNotApply(std::string_view operation, std::string_view path, std::string_view why) {
  return Error(Code::kInvalid, fmt::format("{} operation does not apply: {}: {}", operation, path, why));
}

// Parses an RFC 6901 pointer.
Result<std::vector<std::string>> ParsePointer(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  if (text.front() != '/') {
    return Malformed(fmt::format("json patch path \"{}\" does not start with /", text));
  }
  for (size_t start = 1; start <= text.size();) {
    size_t end = std::min(text.find('/', start), text.size());
    std::string part;
    for (size_t i = start; i < end; ++i) {
      bool escape = text[i] == '~' && i + 1 < end && (text[i + 1] == '0' || text[i + 1] == '1');
      part += escape ? (text[++i] == '0' ? '~' : '/') : text[i];
    }
    parts.push_back(std::move(part));
    start = end + 1;
  }
  return parts;
}

// The index of an existing item, or npos.
size_t IndexIn(const json::array& list, std::string_view text, size_t limit) {
  size_t index = 0;
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return kNone;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  (void)list;
  return error == std::errc() && stop == text.data() + text.size() && index < limit ? index : kNone;
}

json::value* Child(json::value& parent, const std::string& part) {
  if (json::object* object = parent.if_object()) return object->if_contains(part);
  if (json::array* list = parent.if_array()) {
    size_t index = IndexIn(*list, part, list->size());
    return index == kNone ? nullptr : &(*list)[index];
  }
  return nullptr;
}

using Pointer = std::vector<std::string>;

json::value* Walk(json::value& document, const Pointer& path, size_t length) {
  json::value* at = &document;
  for (size_t i = 0; at && i < length; ++i) at = Child(*at, path[i]);
  return at;
}

class JsonPatcher {
 public:
  explicit JsonPatcher(json::value& document) : document_(document) {}

  Result<> Apply(const json::value& operation) {
    const json::object* fields = operation.if_object();
    if (!fields) return Malformed("json patch operation is not an object");
    KEELSON_ASSIGN_OR_RETURN(name_, Text(*fields, "op"));
    KEELSON_ASSIGN_OR_RETURN(text_, Text(*fields, "path"));
    KEELSON_ASSIGN_OR_RETURN(Pointer path, ParsePointer(text_));
    if (name_ == "remove") return Remove(path);
    if (name_ == "move" || name_ == "copy") return MoveOrCopy(*fields, path);
    const json::value* value = fields->if_contains("value");
    if (name_ != "add" && name_ != "replace" && name_ != "test") {
      return Malformed("Unexpected kind: " + name_);
    }
    if (!value) return Malformed(name_ + " operation has no value");
    if (name_ == "add") return Add(path, *value);
    json::value* at = Walk(document_, path, path.size());
    if (name_ == "replace") {
      if (!at) return DoesNotApply(name_, text_, "doc is missing key: missing value");
      *at = *value;
      return {};
    }
    bool same = at ? *at == *value : value->is_null();
    if (!same) return Error(Code::kInvalid, "testing value " + text_ + " failed: test failed");
    return {};
  }

 private:
  static Result<std::string> Text(const json::object& fields, std::string_view name) {
    const json::value* value = fields.if_contains(name);
    if (!value || !value->is_string()) return Malformed("json patch operation has no " + std::string(name));
    return std::string(View(value->get_string()));
  }

  Result<> Add(const Pointer& path, json::value value) {
    if (path.empty()) {
      document_ = std::move(value);
      return {};
    }
    json::value* parent = Walk(document_, path, path.size() - 1);
    if (!parent) return DoesNotApply(name_, text_, "doc is missing path: missing value");
    if (json::object* object = parent->if_object()) {
      object->insert_or_assign(path.back(), std::move(value));
      return {};
    }
    json::array* list = parent->if_array();
    if (!list) return DoesNotApply(name_, text_, "doc is missing path: missing value");
    size_t index = path.back() == "-" ? list->size() : IndexIn(*list, path.back(), list->size() + 1);
    if (index == kNone) return DoesNotApply(name_, text_, "invalid index referenced");
    list->insert(list->begin() + static_cast<std::ptrdiff_t>(index), std::move(value));
    return {};
  }

  Result<> Remove(const Pointer& path) {
    json::value* parent = path.empty() ? nullptr : Walk(document_, path, path.size() - 1);
    if (!parent || !Child(*parent, path.back())) {
      return DoesNotApply(name_, text_, "Unable to remove nonexistent key: missing value");
    }
    if (json::object* object = parent->if_object()) {
      object->erase(path.back());
    } else {
      json::array& list = parent->get_array();
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(IndexIn(list, path.back(), list.size())));
    }
    return {};
  }

  Result<> MoveOrCopy(const json::object& fields, const Pointer& path) {
    KEELSON_ASSIGN_OR_RETURN(std::string from_text, Text(fields, "from"));
    KEELSON_ASSIGN_OR_RETURN(Pointer from, ParsePointer(from_text));
    json::value* source = Walk(document_, from, from.size());
    if (!source) return DoesNotApply(name_, from_text, "doc is missing from path: missing value");
    json::value value = *source;
    if (name_ == "copy") {
      // Bound the total: copies of copies grow exponentially.
      copied_ += SizeOf(value);
      if (copied_ > kMaxCopiedBytes) {
        return Error(Code::kTooLarge,
                     "Unable to complete the copy, the accumulated size increase of copy is too large");
      }
      return Add(path, std::move(value));
    }
    bool inside = path.size() > from.size() && std::equal(from.begin(), from.end(), path.begin());
    if (inside) return DoesNotApply(name_, text_, "cannot move a value into itself");
    std::string target = text_;
    text_ = from_text;
    KEELSON_RETURN_IF_ERROR(Remove(from));
    text_ = std::move(target);
    return Add(path, std::move(value));
  }

  static size_t SizeOf(const json::value& value) {
    size_t size = 8;
    if (const json::string* text = value.if_string()) size += text->size();
    if (const json::array* list = value.if_array()) {
      for (const json::value& item : *list) size += SizeOf(item);
    }
    if (const json::object* object = value.if_object()) {
      for (const auto& member : *object) size += member.key().size() + SizeOf(member.value());
    }
    return size;
  }

  json::value& document_;
  std::string name_, text_;  // of the current operation
  size_t copied_ = 0;
};

}  // namespace

std::string PrintGo(const json::value& value) {
  if (const json::object* object = value.if_object()) {
    std::vector<std::string> members;
    for (const auto& member : *object) {
      members.push_back(std::string(member.key()) + ":" + PrintGo(member.value()));
    }
    std::sort(members.begin(), members.end());
    return fmt::format("map[{}]", fmt::join(members, " "));
  }
  if (const json::array* list = value.if_array()) {
    std::vector<std::string> items;
    for (const json::value& item : *list) items.push_back(PrintGo(item));
    return fmt::format("[{}]", fmt::join(items, " "));
  }
  if (const json::string* text = value.if_string()) return {text->data(), text->size()};
  return value.is_null() ? "<nil>" : json::serialize(value);
}

Result<json::value> ApplyJsonPatch(json::value document, const json::value& patch) {
  const json::array* operations = patch.if_array();
  if (!operations) return Malformed("error decoding patch: json patch is not an array");
  if (operations->size() > kMaxJsonPatchOperations) {
    return Error(Code::kTooLarge, fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                                              kMaxJsonPatchOperations, operations->size()));
  }
  JsonPatcher patcher(document);
  for (const json::value& operation : *operations) KEELSON_RETURN_IF_ERROR(patcher.Apply(operation));
  return document;
}

}  // namespace keelson::api
