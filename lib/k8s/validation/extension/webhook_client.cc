// How the API server reaches admission and conversion webhooks.
#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace {

constexpr char kForm[] = "; desired format: https://host[/path]";

// The parts of a URL that the rules use, split as Go's url.Parse does.
struct UrlParts {
  std::string_view scheme, user, host, query, fragment;
  bool has_user = false;
};

UrlParts TakeApart(std::string_view url) {
  UrlParts parts;
  if (const size_t hash = url.find('#'); hash != std::string_view::npos) {
    parts.fragment = url.substr(hash + 1);
    url = url.substr(0, hash);
  }
  if (const size_t mark = url.find('?'); mark != std::string_view::npos) {
    parts.query = url.substr(mark + 1);
    url = url.substr(0, mark);
  }
  const size_t colon = url.find(':');
  if (colon != std::string_view::npos && url.find('/') > colon) {
    parts.scheme = url.substr(0, colon);
    url.remove_prefix(colon + 1);
  }
  if (!url.starts_with("//")) return parts;
  std::string_view authority = url.substr(2, url.find('/', 2) - 2);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    parts.user = authority.substr(0, at);
    parts.has_user = true;
    authority.remove_prefix(at + 1);
  }
  parts.host = authority;
  return parts;
}

// The error of url.Parse, or empty.
std::string ParseProblem(std::string_view url) {
  for (char c : url) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return fmt::format("parse {}: net/url: invalid control character in URL", Quote(url));
    }
  }
  if (url.starts_with(":")) return fmt::format("parse {}: missing protocol scheme", Quote(url));
  const UrlParts parts = TakeApart(url);
  if (parts.scheme.empty() && parts.host.empty()) {
    const std::string_view first = url.substr(0, url.find('/'));
    if (first.find(':') != std::string_view::npos) {
      return fmt::format("parse {}: first path segment in URL cannot contain colon", Quote(url));
    }
  }
  return {};
}

}  // namespace

void CheckWebhookUrl(std::string_view url, const Path& path, FieldErrors& errors) {
  if (const std::string problem = ParseProblem(url); !problem.empty()) {
    errors.push_back(Required(path, "url must be a valid URL: " + problem + kForm));
    return;
  }
  const UrlParts parts = TakeApart(url);
  if (Lower(parts.scheme) != "https") {
    errors.push_back(
        Invalid(path, Lower(parts.scheme), std::string("'https' is the only allowed URL scheme") + kForm));
  }
  if (parts.host.empty()) errors.push_back(Invalid(path, "", std::string("host must be specified") + kForm));
  if (parts.has_user) {
    errors.push_back(Invalid(path, parts.user, "user information is not permitted in the URL"));
  }
  if (!parts.fragment.empty()) {
    errors.push_back(Invalid(path, parts.fragment, "fragments are not permitted in the URL"));
  }
  if (!parts.query.empty()) {
    errors.push_back(Invalid(path, parts.query, "query parameters are not permitted in the URL"));
  }
}

void CheckWebhookService(std::string_view ns, std::string_view name, const std::string* url_path,
                         int32_t port, const Path& path, FieldErrors& errors) {
  if (name.empty()) errors.push_back(Required(path.Child("name"), "service name is required"));
  if (ns.empty()) errors.push_back(Required(path.Child("namespace"), "service namespace is required"));
  if (const Problems problems = CheckPortNumber(port); !problems.empty()) {
    errors.push_back(
        Invalid(path.Child("port"), int64_t{port}, "port is not valid: " + Join(problems, ", ")));
  }
  if (!url_path || url_path->empty() || *url_path == "/") return;
  const Path place = path.Child("path");
  const auto invalid = [&](std::string_view detail) { errors.push_back(Invalid(place, *url_path, detail)); };
  if (*url_path == "//") {
    invalid("segment[0] may not be empty");
    return;
  }
  if (!url_path->starts_with("/")) invalid("must start with a '/'");
  std::string_view rest = std::string_view(*url_path).substr(1);
  if (rest.ends_with("/")) rest.remove_suffix(1);
  const std::vector<std::string_view> steps = Split(rest, '/');
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].empty()) {
      invalid(fmt::format("segment[{}] may not be empty", i));
      continue;
    }
    for (const std::string& problem : CheckDns1123Subdomain(steps[i])) {
      invalid(fmt::format("segment[{}]: {}", i, problem));
    }
  }
}

}  // namespace keelson::k8s
