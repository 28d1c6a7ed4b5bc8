#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>

#include "lib/api/duration.h"
#include "lib/base/ip.h"
#include "proxy/document.h"
#include "proxy/document_fields.h"

namespace keelson::proxy {
namespace {

constexpr char kApiVersion[] = "kubeproxy.config.k8s.io/v1alpha1";
constexpr char kKind[] = "KubeProxyConfiguration";

Error Bad(const std::string& what) { return Error(Code::kInvalid, "failed to decode: " + what); }

// Where a dotted path leads; nullopt when nothing is said there.
std::optional<YAML::Node> Find(const YAML::Node& root, const std::string& path) {
  YAML::Node at = root;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (!at.IsMap()) return std::nullopt;
    const YAML::Node& parent = at;
    YAML::Node child = parent[path.substr(begin, end - begin)];
    if (!child.IsDefined()) return std::nullopt;
    at.reset(child);
    begin = end + 1;
  }
  if (at.IsNull()) return std::nullopt;
  return at;
}

Result<> Read(const YAML::Node& node, Document::Duration& out) {
  ASSIGN_OR_RETURN(int64_t nanos, api::ParseGoDuration(node.as<std::string>()));
  out = Document::Duration(nanos);
  return {};
}
template <typename T>
Result<> Read(const YAML::Node& node, T& out) {
  out = node.as<T>();
  return {};
}

// Every path of the text, to find those that mean nothing.
void Paths(const YAML::Node& node, const std::string& at, const std::set<std::string>& known,
           std::vector<std::string>& problems) {
  for (const auto& entry : node) {
    std::string path = (at.empty() ? "" : at + ".") + entry.first.as<std::string>();
    if (known.contains(path)) continue;
    if (entry.second.IsMap() && known.lower_bound(path + ".") != known.end() &&
        known.lower_bound(path + ".")->starts_with(path + ".")) {
      Paths(entry.second, path, known, problems);
    } else {
      problems.push_back("unknown field \"" + path + "\"");
    }
  }
}

Result<> Overlay(const YAML::Node& root, Document& document, std::vector<std::string>& problems) {
  if (!root.IsMap()) return Bad("couldn't get version/kind; json parse error: not an object");
  auto kind = Find(root, "kind"), version = Find(root, "apiVersion");
  if (!kind) return Bad("Object 'Kind' is missing");
  if (!version) return Bad("Object 'apiVersion' is missing");
  if (kind->as<std::string>() != kKind || version->as<std::string>() != kApiVersion) {
    return Bad("no kind \"" + kind->as<std::string>() + "\" is registered for version \"" +
               version->as<std::string>() + "\"");
  }
  std::set<std::string> known = {"kind", "apiVersion", "logging.options", "logging.vmodule"};
  Result<> all;
  ForEachField(document, [&](const char* path, auto& field, Form form) {
    known.insert(path);
    auto node = Find(root, path);
    if (!node || !all) return;
    using T = std::decay_t<decltype(field)>;
    T value{};
    try {
      all = Read(*node, value);
      if (!all) all = Bad(path + (": " + all.error().message()));
    } catch (const YAML::Exception&) {
      all = Bad(std::string(path) + ": a value of another type is expected");
    }
    if (all && (form == Form::kPointer || value != T{})) field = value;
  });
  RETURN_IF_ERROR(all);
  Paths(root, "", known, problems);
  return {};
}

}  // namespace

Result<> ReadDocument(const std::string& text, Document& document, std::vector<std::string>& problems) {
  try {
    return Overlay(YAML::Load(text), document, problems);
  } catch (const YAML::Exception& e) {
    return Bad(std::string("yaml: ") + e.what());
  }
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
