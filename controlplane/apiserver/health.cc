#include "controlplane/apiserver/health.h"

#include <algorithm>

#include "controlplane/apiserver/handlers/response.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

bool Excluded(const Context& context, const std::string& name) {
  std::vector<std::string_view> excluded = context.query().All("exclude");
  return std::find(excluded.begin(), excluded.end(), name) != excluded.end();
}

}  // namespace

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

  std::string report;
  bool failed = false, found = one.empty();
  for (const HealthCheck& check : checks_) {
    if (!one.empty() ? check.name != one : (!check.live && endpoint != "readyz")) continue;
    found = true;
    if (Excluded(context, check.name)) {
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
  if (!found) {
    ReplyText(context, 404, kText, "404 page not found\n");
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
