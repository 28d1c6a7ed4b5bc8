#include "controlplane/apiserver/health.h"

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/component/health_report.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

}  // namespace

std::vector<std::string> Health::Paths() const {
  std::vector<std::string> paths;
  for (const char* endpoint : {"/healthz", "/livez", "/readyz"}) {
    paths.emplace_back(endpoint);
    for (const HealthCheck& check : checks_) {
      if (check.live || paths.back().compare(0, 7, "/readyz") == 0) {
        paths.push_back(std::string(endpoint) + "/" + check.name);
      }
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

  std::vector<component::NamedCheck> asked;
  for (const HealthCheck& check : checks_) {
    if (check.live || endpoint == "readyz" || !one.empty()) asked.push_back({check.name, check.check});
  }
  component::HealthAnswer answer = component::AnswerHealth(
      asked, {endpoint, one, context.query().All("exclude"), context.query().Has("verbose")});
  ReplyText(context, answer.status, kText, std::move(answer.text));
  return true;
}

}  // namespace keelson::apiserver
