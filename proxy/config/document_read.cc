#include <boost/json.hpp>
#include <limits>
#include <set>

#include "lib/api/duration.h"
#include "lib/base/ip.h"
#include "lib/component/logging_options.h"
#include "lib/k8s/text/yaml.h"
#include "proxy/config/document.h"
#include "proxy/config/document_fields.h"

namespace keelson::proxy {
namespace {

namespace json = boost::json;

constexpr char kApiVersion[] = "kubeproxy.config.k8s.io/v1alpha1";
constexpr char kKind[] = "KubeProxyConfiguration";
constexpr std::string_view kFlushFrequency = "logging.flushFrequency";

Error Bad(const std::string& what) { return Error(Code::kInvalid, "failed to decode: " + what); }

std::string Text(const json::string& value) { return {value.data(), value.size()}; }

// Where a dotted path leads; null when nothing is said there.
const json::value* Find(const json::value& root, std::string_view path) {
  const json::value* at = &root;
  for (size_t begin = 0; at && begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    at = at->is_object() ? at->get_object().if_contains(path.substr(begin, end - begin)) : nullptr;
    begin = end + 1;
  }
  return at && !at->is_null() ? at : nullptr;
}

std::string KindOf(const json::value& value) {
  if (value.is_number()) return "number " + json::serialize(value);
  if (value.is_bool()) return "bool";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : value.is_object() ? "object" : "null";
}

Error Mismatch(const json::value& value, const char* type) {
  return Error(Code::kBadRequest,
               "json: cannot unmarshal " + KindOf(value) + " into a value of type " + type);
}

Result<> Read(const json::value& value, std::string& out) {
  if (!value.is_string()) return Mismatch(value, "string");
  out = Text(value.get_string());
  return {};
}
Result<> Read(const json::value& value, bool& out) {
  if (!value.is_bool()) return Mismatch(value, "bool");
  out = value.get_bool();
  return {};
}
Result<> Read(const json::value& value, int& out) {
  const bool fits = value.is_int64() && value.get_int64() >= std::numeric_limits<int>::min() &&
                    value.get_int64() <= std::numeric_limits<int>::max();
  if (!fits) return Mismatch(value, "int32");
  out = static_cast<int>(value.get_int64());
  return {};
}
Result<> Read(const json::value& value, double& out) {
  if (!value.is_number()) return Mismatch(value, "float32");
  out = value.to_number<double>();
  return {};
}
Result<> Read(const json::value& value, Document::Duration& out) {
  std::string text;
  RETURN_IF_ERROR(Read(value, text));
  ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(text));
  out = Document::Duration(nanos);
  return {};
}
Result<> Read(const json::value& value, std::vector<std::string>& out) {
  if (!value.is_array()) return Mismatch(value, "slice");
  for (const json::value& item : value.get_array()) RETURN_IF_ERROR(Read(item, out.emplace_back()));
  return {};
}
Result<> Read(const json::value& value, std::map<std::string, bool>& out) {
  if (!value.is_object()) return Mismatch(value, "map");
  for (const auto& member : value.get_object())
    RETURN_IF_ERROR(Read(member.value(), out[std::string(member.key())]));
  return {};
}

// The one duration that may be a number too.
template <typename T>
Result<> ReadField(std::string_view path, const json::value& value, T& out) {
  if constexpr (std::is_same_v<T, Document::Duration>) {
    if (path == kFlushFrequency) {
      ASSIGN_OR_RETURN(int64_t nanos, k8s::ParseFlushFrequency(value));
      out = Document::Duration(nanos);
      return {};
    }
  }
  return Read(value, out);
}

// Every path of the text, to find those that mean nothing.
Result<> Paths(const json::object& node, const std::string& at, const std::set<std::string>& known,
               std::vector<std::string>& problems) {
  for (const auto& member : node) {
    const std::string path = (at.empty() ? "" : at + ".") + std::string(member.key());
    if (known.contains(path)) continue;
    const auto below = known.lower_bound(path + ".");
    const bool section = below != known.end() && below->starts_with(path + ".");
    if (!section) {
      problems.push_back("unknown field \"" + path + "\"");
    } else if (member.value().is_object()) {
      RETURN_IF_ERROR(Paths(member.value().get_object(), path, known, problems));
    } else if (!member.value().is_null()) {
      return Mismatch(member.value(), "struct").Wrap(path);
    }
  }
  return {};
}

Result<> Overlay(const json::value& root, Document& document, std::vector<std::string>& problems) {
  if (!root.is_object()) return Bad("couldn't get version/kind; json parse error: not an object");
  std::string kind, version;
  for (const auto& [name, out] : {std::pair{"kind", &kind}, std::pair{"apiVersion", &version}}) {
    const json::value* found = Find(root, name);
    if (!found)
      return Bad("Object '" + std::string(name == std::string_view("kind") ? "Kind" : name) + "' is missing");
    if (auto read = Read(*found, *out); !read)
      return Bad("couldn't get version/kind; " + read.error().message());
  }
  if (kind != kKind || version != kApiVersion)
    return Bad("no kind \"" + kind + "\" is registered for version \"" + version + "\"");
  std::set<std::string> known = {"kind", "apiVersion", "logging.options", "logging.vmodule"};
  Result<> all;
  ForEachField(document, [&](const char* path, auto& field, Form form) {
    known.insert(path);
    const json::value* found = Find(root, path);
    if (!found || !all) return;
    using T = std::decay_t<decltype(field)>;
    T value{};
    all = ReadField(path, *found, value);
    if (!all) all = Bad(path + (": " + all.error().message()));
    if (all && (form == Form::kPointer || value != T{})) field = value;
  });
  RETURN_IF_ERROR(all);
  const json::value* logging = Find(root, "logging");
  if (logging && logging->is_object())
    if (auto checked = k8s::CheckLoggingOptions(logging->get_object(), problems); !checked)
      return Bad(checked.error().message());
  if (auto sections = Paths(root.get_object(), "", known, problems); !sections)
    return Bad(sections.error().message());
  return {};
}

}  // namespace

Result<> ReadDocument(const std::string& text, Document& document, std::vector<std::string>& problems) {
  auto as_json = k8s::YamlToJson(text, &problems);
  if (!as_json) return Bad(as_json.error().message());
  return Overlay(json::parse(*as_json), document, problems);
}

void SetDefaults(Document& d) {
  Result<IpAddress> bind = IpAddress::Parse(d.bind_address);
  const bool v6 = bind && bind->is_v6();
  auto complete = [](std::string& address, const std::string& host, const char* port) {
    if (address.empty()) address = host;
    Result<IpAddress> ip = IpAddress::Parse(address);
    if (ip && ip->is_v6()) address = "[" + address + "]";
    const bool has_port = address.rfind(':') != std::string::npos && address.back() != ']';
    if (!has_port) address += port;
  };
  complete(d.healthz_bind_address, v6 ? "[::]" : "0.0.0.0", ":10256");
  complete(d.metrics_bind_address, v6 ? "[::1]" : "127.0.0.1", ":10249");
}

}  // namespace keelson::proxy
