#include "controlplane/apiserver/health.h"

#include <set>

#include "controlplane/apiserver/handlers/response.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

// What stands in ?exclude= and is no check; quoted, or empty.
std::string Unmatched(const std::set<std::string_view>& excluded) {
  std::string out;
  for (std::string_view name : excluded) {
    out += out.empty() ? "\"" : ",\"";
    out.append(name).append("\"");
  }
  return out;
}

}  // namespace

std::vector<std::string> Health::Paths() const {
  std::vector<std::string> paths;
  for (const char* endpoint : {"/healthz", "/livez", "/readyz"}) {
    paths.emplace_back(endpoint);
    for (const HealthCheck& check : checks_) {
      if (check.live || paths.back().compare(0, 7, "/readyz") == 0)
        paths.push_back(std::string(endpoint) + "/" + check.name);
    }
  }
  return paths;
}

bool Health::Handle(Context& context) const {
  std::string_view path = context.info.path;
  std::string_view endpoint, one;
  for (std::string_view candidate : {"/healthz", "/livez", "/readyz"}) {
    if (path.substr(0, candidate.size()) != candidate) continue;
    std::string_view rest = path.substr(candidate.size());
    if (!rest.empty() && rest.front() != '/') continue;
    endpoint = candidate.substr(1);
    if (rest.size() > 1) one = rest.substr(1);
  }
  if (endpoint.empty()) return false;

  std::vector<std::string_view> names = context.query().All("exclude");
  std::set<std::string_view> excluded(names.begin(), names.end());
  excluded.erase("");
  std::string report;
  bool failed = false, found = one.empty();
  for (const HealthCheck& check : checks_) {
    if (!one.empty() ? check.name != one : (!check.live && endpoint != "readyz")) continue;
    found = true;
    if (one.empty() && excluded.erase(check.name) > 0) {
      report += "[+]" + check.name + " excluded: ok\n";
      continue;
    }
    Result<> result = check.check();
    if (result) {
      report += "[+]" + check.name + " ok\n";
      continue;
    }
    failed = true;
    // Who may ask is anybody: why it failed is in the log.
    report += "[-]" + check.name + " failed: reason withheld\n";
    log::Warn("Health check failed",
              {{"check", check.name}, {"endpoint", endpoint}, {"error", result.error()}});
  }
  if (one.empty() && !excluded.empty()) {
    report += "warn: some health checks cannot be excluded: no matches for " + Unmatched(excluded) + "\n";
  }
  if (!found) {
    ReplyText(context, 404, kText, "404 page not found\n");
  } else if (failed && !one.empty()) {
    ReplyText(context, 500, kText, "internal server error: reason withheld\n");
  } else if (failed) {
    ReplyText(context, 500, kText, report + std::string(endpoint) + " check failed\n");
  } else if (one.empty() && context.query().Has("verbose")) {
    ReplyText(context, 200, kText, report + std::string(endpoint) + " check passed\n");
  } else {
    ReplyText(context, 200, kText, "ok");
  }
  return true;
}

}  // namespace keelson::apiserver
