#include "lib/api/codec/custom_object.h"

#include <algorithm>
#include <vector>

#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"
#include "lib/api/proto/custom_object.pb.h"

namespace keelson::api {
namespace {

namespace json = boost::json;

constexpr size_t kMaxTreeDepth = 1000;

json::value Parse(std::string_view text, boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = kMaxTreeDepth;
  return json::parse(json::string_view(text.data(), text.size()), error, {}, options);
}

void Append(const json::value& value, Sink& out);

void AppendObject(const json::object& object, Sink& out) {
  std::vector<const json::key_value_pair*> members;
  members.reserve(object.size());
  for (const auto& member : object) members.push_back(&member);
  auto before = [](const auto* a, const auto* b) { return a->key() < b->key(); };
  if (!std::is_sorted(members.begin(), members.end(), before)) {
    std::sort(members.begin(), members.end(), before);
  }
  out.Put('{');
  for (const auto* member : members) {
    if (member != members.front()) out.Put(',');
    AppendQuoted({member->key().data(), member->key().size()}, out);
    out.Put(':');
    Append(member->value(), out);
  }
  out.Put('}');
}

void Append(const json::value& value, Sink& out) {
  switch (value.kind()) {
    case json::kind::null:
      return out.Append("null");
    case json::kind::bool_:
      return out.Append(value.get_bool() ? "true" : "false");
    case json::kind::int64:
      return AppendInt(value.get_int64(), out);
    case json::kind::uint64:  // above the largest int64: Go holds it as float64
      return AppendDouble(static_cast<double>(value.get_uint64()), out);
    case json::kind::double_:
      return AppendDouble(value.get_double(), out);
    case json::kind::string:
      return AppendQuoted({value.get_string().data(), value.get_string().size()}, out);
    case json::kind::object:
      return AppendObject(value.get_object(), out);
    case json::kind::array:
      break;
  }
  out.Put('[');
  bool first = true;
  for (const json::value& item : value.get_array()) {
    if (!first) out.Put(',');
    first = false;
    Append(item, out);
  }
  out.Put(']');
}

}  // namespace

Result<json::value> ParseTree(std::string_view text) {
  boost::system::error_code error;
  json::value value = Parse(text, error);
  if (error && !IsUtf8(text)) value = Parse(ReplaceInvalidUtf8(text), error);
  if (error) return Error(Code::kBadRequest, error.message());
  return value;
}

Result<json::object> ContentOf(const Message& custom) {
  const std::string& text = static_cast<const custom::CustomObject&>(custom).content();
  if (text.empty()) return json::object();
  KEELSON_ASSIGN_OR_RETURN(json::value value, ParseTree(text));
  return std::move(value.get_object());
}

const std::string& ContentText(const Message& custom) {
  return static_cast<const custom::CustomObject&>(custom).content();
}

void SetContent(Message& custom, const json::object& content) {
  auto& object = static_cast<custom::CustomObject&>(custom);
  if (content.empty()) return object.clear_content();
  std::string text;
  {
    Sink out(text);
    AppendObject(content, out);
  }
  text.shrink_to_fit();
  object.set_content(std::move(text));
}

std::string CanonicalJson(const json::value& value) {
  std::string text;
  {
    Sink out(text);
    Append(value, out);
  }
  return text;
}

Result<json::object> TreeOf(const Message& custom, const GroupVersionKind& gvk) {
  KEELSON_ASSIGN_OR_RETURN(json::value value, ParseTree(EncodeJson(custom, gvk)));
  return std::move(value.get_object());
}

Result<json::object> UnmanagedTreeOf(const Message& custom, const GroupVersionKind& gvk) {
  const auto& from = static_cast<const custom::CustomObject&>(custom);
  if (from.metadata().managed_fields().empty()) return TreeOf(custom, gvk);
  custom::CustomObject head;
  *head.mutable_metadata() = from.metadata();
  head.mutable_metadata()->clear_managed_fields();
  KEELSON_ASSIGN_OR_RETURN(json::object tree, TreeOf(head, gvk));
  KEELSON_ASSIGN_OR_RETURN(json::object content, ContentOf(custom));
  for (auto& member : content) tree[member.key()] = std::move(member.value());
  return tree;
}

Result<std::unique_ptr<Message>> FromTree(json::object tree) {
  auto object = std::make_unique<custom::CustomObject>();
  if (const json::value* metadata = tree.if_contains("metadata")) {
    KEELSON_RETURN_IF_ERROR(DecodeJson("{\"metadata\":" + CanonicalJson(*metadata) + "}", *object));
  }
  for (const char* name : {"apiVersion", "kind", "metadata"}) tree.erase(name);
  SetContent(*object, tree);
  return std::unique_ptr<Message>(std::move(object));
}

}  // namespace keelson::api
