#include "lib/component/health_report.h"

#include <set>

#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::component {

namespace {

// What stands in ?exclude= and is no check; quoted, or empty.
std::string Unmatched(const std::set<std::string_view>& excluded) {
  std::string out;
  for (std::string_view name : excluded) {
    out += out.empty() ? "\"" : ",\"";
    out.append(name).append("\"");
  }
  return out;
}

// On a page of their own, which is asked more often than the others.
struct Slis {
  metrics::Family latest{metrics::Type::kGauge,
                         "kubernetes_healthcheck",
                         "[STABLE] This metric records the result of a single healthcheck.",
                         {"name", "type"},
                         {}};
  metrics::Family total{metrics::Type::kCounter,
                        "kubernetes_healthchecks_total",
                        "[STABLE] This metric records the results of all healthcheck.",
                        {"name", "status", "type"},
                        {}};
};

Slis& TheSlis() {
  static Slis slis;
  return slis;
}

void Count(const std::string& name, std::string_view endpoint, bool passes) {
  const std::string type(endpoint);
  TheSlis().latest.With({name, type}).Set(passes ? 1 : 0);
  TheSlis().total.With({name, passes ? "success" : "error", type}).Increment();
}

bool Passes(const NamedCheck& check, std::string_view endpoint) {
  Result<> result = check.check();
  Count(check.name, endpoint, result.has_value());
  if (!result) {
    log::Warn("Health check failed",
              {{"check", check.name}, {"endpoint", endpoint}, {"err", result.error()}});
  }
  return result.has_value();
}

HealthAnswer AnswerOne(const std::vector<NamedCheck>& checks, const HealthQuestion& question) {
  for (const NamedCheck& check : checks) {
    if (check.name != question.one) continue;
    if (Passes(check, question.endpoint)) return {200, "ok"};
    return {500, "internal server error: reason withheld\n"};
  }
  return {404, "404 page not found\n"};
}

}  // namespace

HealthAnswer AnswerHealth(const std::vector<NamedCheck>& checks, const HealthQuestion& question) {
  if (!question.one.empty()) return AnswerOne(checks, question);
  std::set<std::string_view> excluded(question.excluded.begin(), question.excluded.end());
  excluded.erase("");
  std::string report;
  bool failed = false;
  for (const NamedCheck& check : checks) {
    if (excluded.erase(check.name) > 0) {
      report += "[+]" + check.name + " excluded: ok\n";
    } else if (Passes(check, question.endpoint)) {
      report += "[+]" + check.name + " ok\n";
    } else {
      failed = true;
      report += "[-]" + check.name + " failed: reason withheld\n";
    }
  }
  if (!excluded.empty()) {
    report += "warn: some health checks cannot be excluded: no matches for " + Unmatched(excluded) + "\n";
  }
  const std::string endpoint(question.endpoint);
  if (failed) return {500, report + endpoint + " check failed\n"};
  if (question.verbose) return {200, report + endpoint + " check passed\n"};
  return {200, "ok"};
}

std::string HealthMetrics() {
  std::string out;
  TheSlis().latest.Print(out);
  TheSlis().total.Print(out);
  return out;
}

}  // namespace keelson::component
