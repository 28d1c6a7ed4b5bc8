#include "controlplane/apiserver/request/request_info.h"

#include <algorithm>

#include "lib/base/text.h"

namespace keelson::apiserver {
namespace {

std::vector<std::string_view> SplitPath(std::string_view path) {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  std::vector<std::string_view> parts;
  if (path.empty()) return parts;
  for (;;) {
    auto slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

std::string_view VerbOfMethod(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "GET" || method == "HEAD") return "get";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return "";
}

// The name that a field selector pins the objects of a list or watch to: authorization may then look at it.
std::string NameInFieldSelector(std::string_view selector) {
  constexpr std::string_view kField = "metadata.name=";
  while (!selector.empty()) {
    size_t end = selector.find(',');
    std::string_view term = selector.substr(0, end);
    selector.remove_prefix(end == std::string_view::npos ? selector.size() : end + 1);
    if (term.substr(0, kField.size()) != kField) continue;
    term.remove_prefix(kField.size());
    if (!term.empty() && term.front() == '=') term.remove_prefix(1);
    // An invalid path segment is not a name.
    if (term == "." || term == ".." || term.find_first_of("/%\\") != std::string_view::npos) return "";
    return std::string(term);
  }
  return "";
}

std::string JoinFrom(const std::vector<std::string_view>& parts, size_t from) {
  std::string out;
  for (size_t i = from; i < parts.size(); ++i) (out += '/') += parts[i];
  return out;
}

}  // namespace

RequestInfo ParseRequestInfo(std::string_view method, std::string_view path, const http::Query& query) {
  RequestInfo info;
  info.path = path;
  info.verb = Lower(method);
  std::vector<std::string_view> parts = SplitPath(path);
  if (parts.size() < 3 || (parts[0] != "api" && parts[0] != "apis")) return info;
  size_t at = 1;
  if (parts[0] == "apis") {
    if (parts.size() < 4) return info;
    info.group = parts[at++];
  }
  info.version = parts[at++];
  info.is_resource = true;
  info.verb = VerbOfMethod(method);

  bool watch_prefix = parts[at] == "watch" && at + 1 < parts.size();
  if (watch_prefix) {
    info.verb = "watch";
    ++at;
  }
  if (parts[at] == "namespaces" && at + 1 < parts.size()) {
    info.ns = parts[at + 1];
    // namespaces/NAME/status and /finalize are subresources of the namespace; others are resources in it.
    if (at + 2 < parts.size() && parts[at + 2] != "status" && parts[at + 2] != "finalize") at += 2;
  }
  info.resource = parts[at++];
  if (at < parts.size()) info.name = parts[at++];
  if (at < parts.size()) info.subresource = parts[at++];
  if (info.subresource == "proxy") {
    info.proxy_path = JoinFrom(parts, at);
    if (!path.empty() && path.back() == '/' && (info.proxy_path.empty() || info.proxy_path.back() != '/')) {
      info.proxy_path += '/';
    }
  }

  if (info.name.empty() && info.verb == "get") {
    std::string_view watch = query.Get("watch");
    bool watching = query.Has("watch") && watch != "0" && !EqualsIgnoreCase(watch, "false");
    info.verb = watching ? "watch" : "list";
  } else if (info.name.empty() && info.verb == "delete") {
    info.verb = "deletecollection";
  }
  if (info.verb == "list" || info.verb == "watch" || info.verb == "deletecollection") {
    info.field_selector = query.Get("fieldSelector");
    info.label_selector = query.Get("labelSelector");
    if (info.name.empty()) info.name = NameInFieldSelector(info.field_selector);
  }
  return info;
}

}  // namespace keelson::apiserver
