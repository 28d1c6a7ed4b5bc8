#include "controlplane/apiserver/audit/legacy_line.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "lib/k8s/field_error.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;

using k8s::Quote;

std::string TextOf(const json::object& object, std::string_view name, std::string_view otherwise = "") {
  const json::value* value = object.if_contains(name);
  const json::string* text = value ? value->if_string() : nullptr;
  return text && !text->empty() ? std::string(text->c_str(), text->size()) : std::string(otherwise);
}

const json::object& ObjectOf(const json::object& object, std::string_view name) {
  static const json::object none;
  const json::value* value = object.if_contains(name);
  return value && value->is_object() ? value->get_object() : none;
}

// "a","b"
std::string GroupsOf(const json::object& user, std::string_view otherwise) {
  const json::value* groups = user.if_contains("groups");
  if (!groups || !groups->is_array() || groups->get_array().empty()) return std::string(otherwise);
  std::string out;
  for (const json::value& group : groups->get_array()) {
    if (!out.empty()) out += ',';
    if (const json::string* text = group.if_string()) out += Quote({text->data(), text->size()});
  }
  return out;
}

}  // namespace

std::string LegacyLine(std::string_view event_json) {
  boost::system::error_code error;
  const json::value parsed = json::parse(event_json, error);
  if (error || !parsed.is_object()) return std::string(event_json);
  const json::object& event = parsed.get_object();
  const json::object &user = ObjectOf(event, "user"), &acting = ObjectOf(event, "impersonatedUser");
  std::string response = "<deferred>";
  if (const json::value* code = ObjectOf(event, "responseStatus").if_contains("code");
      code && code->is_int64()) {
    response = std::to_string(code->get_int64());
  }
  std::string ip = "<unknown>";
  if (const json::value* ips = event.if_contains("sourceIPs");
      ips && ips->is_array() && !ips->get_array().empty() && ips->get_array()[0].is_string()) {
    ip = ips->get_array()[0].get_string().c_str();
  }
  return fmt::format(
      "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} namespace={} uri={} "
      "response=\"{}\"",
      TextOf(event, "requestReceivedTimestamp"), Quote(TextOf(event, "auditID")),
      Quote(TextOf(event, "stage")), Quote(ip), Quote(TextOf(event, "verb")),
      Quote(TextOf(user, "username", "<none>")), Quote(GroupsOf(user, "<none>")),
      Quote(TextOf(acting, "username", "<self>")), Quote(GroupsOf(acting, "<lookup>")),
      Quote(TextOf(ObjectOf(event, "objectRef"), "namespace", "<none>")), Quote(TextOf(event, "requestURI")),
      response);
}

}  // namespace keelson::apiserver::audit
