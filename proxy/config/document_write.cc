#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lib/api/duration.h"
#include "lib/base/json_quote.h"
#include "proxy/config/document.h"
#include "proxy/config/document_fields.h"

namespace keelson::proxy {
namespace {

// JSON of one field.
std::string Json(const std::string& text) { return JsonQuoted(text); }
std::string Json(bool flag) { return flag ? "true" : "false"; }
std::string Json(int number) { return std::to_string(number); }
std::string Json(double number) { return fmt::format("{:g}", number); }
std::string Json(Document::Duration duration) { return JsonQuoted(api::FormatGoDuration(duration.count())); }
std::string Json(const std::vector<std::string>& list) {
  if (list.empty()) return "null";
  std::string out;
  for (const std::string& text : list) out += (out.empty() ? "[" : ",") + JsonQuoted(text);
  return out + "]";
}
std::string Json(const std::map<std::string, bool>& map) {
  std::string out;
  for (const auto& [name, on] : map) out += (out.empty() ? "" : ",") + JsonQuoted(name) + ":" + Json(on);
  return "{" + out + "}";
}

using Path = std::vector<std::string>;
using Leaves = std::map<Path, std::string>;  // in the order of their names, as Go sorts them

Path Split(const std::string& path) {
  Path out;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    out.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// YAML takes JSON as it is; simple words need no quotes.
std::string Plain(const std::string& json) {
  if (json.size() < 3 || json.front() != '"') return json;
  std::string text = json.substr(1, json.size() - 2);
  auto simple = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("./:_-").find(c) != std::string::npos;
  };
  const bool word = std::isalnum(static_cast<unsigned char>(text[0])) || text[0] == '/';
  const bool number =
      text.find_first_not_of("0123456789.") == std::string::npos && text.find('.') == text.rfind('.');
  const bool reserved = text == "true" || text == "false" || text == "null" || text == "yes" ||
                        text == "no" || text == "on" || text == "off";
  return word && !number && !reserved && text.back() != ':' && std::all_of(text.begin(), text.end(), simple)
             ? text
             : json;
}

// How many leading parts two paths share.
size_t Shared(const Path& a, const Path& b) {
  auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(x - a.begin());
}

std::string NestedJson(const Leaves& leaves) {
  std::string out = "{";
  Path open;  // of the object that `out` is in
  bool first = true;
  for (const auto& [path, json] : leaves) {
    size_t shared = Shared(open, path);
    out.append(open.size() - shared, '}');
    if (!first && out.back() != '{') out += ',';
    first = false;
    open.resize(shared);
    for (; open.size() + 1 < path.size(); open.push_back(path[open.size()])) {
      out += JsonQuoted(path[open.size()]) + ":{";
    }
    out += JsonQuoted(path.back()) + ":" + json;
  }
  return out + std::string(open.size() + 1, '}');
}

}  // namespace

std::string ToYaml(const Document& document) {
  Leaves leaves = {{{"apiVersion"}, "\"kubeproxy.config.k8s.io/v1alpha1\""},
                   {{"kind"}, "\"KubeProxyConfiguration\""}};
  ForEachField(document, [&](const char* path, const auto& field, component::Zero) {
    std::string json = Json(field);
    const bool omitted = json == "{}" || (std::string_view(path) == "windowsRunAsService" && json == "false");
    if (!omitted) leaves[Split(path)] = json;
  });
  std::string out;
  Path open;
  for (const auto& [path, json] : leaves) {
    open.resize(std::min(Shared(open, path), path.size() - 1));
    for (; open.size() + 1 < path.size(); open.push_back(path[open.size()])) {
      out += std::string(2 * open.size(), ' ') + path[open.size()] + ":\n";
    }
    out += std::string(2 * open.size(), ' ') + path.back() + ": " + Plain(json) + "\n";
  }
  return out;
}

std::string ToConfigz(const Document& document) {
  Leaves leaves;
  ForEachInternalField(document,
                       [&](const char* path, const auto& field) { leaves[Split(path)] = Json(field); });
  // Internally a list.
  std::vector<std::string> cidrs;
  if (!document.cluster_cidr.empty()) {
    for (size_t begin = 0; begin <= document.cluster_cidr.size();) {
      size_t end = std::min(document.cluster_cidr.find(',', begin), document.cluster_cidr.size());
      cidrs.push_back(document.cluster_cidr.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  leaves[{"DetectLocal", "ClusterCIDRs"}] = Json(cidrs);
  return "{\"kubeproxy.config.k8s.io\":" + NestedJson(leaves) + "}";
}

}  // namespace keelson::proxy
