#include "controlplane/apiserver/handlers/non_resource_routes.h"

#include <algorithm>
#include <set>

#include <boost/json.hpp>

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/codec/codec.h"
#include "lib/base/build_info.h"
#include "lib/base/version.h"
#include "lib/component/health_report.h"
#include "lib/http/server/metrics_page.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

// Indented, because people read these documents.
std::string Shown(const json::value& value) { return api::PrettyJson(json::serialize(value)); }

void ReplyMetrics(Context& context, std::string text) {
  http::MetricsAnswer answer = http::AnswerMetrics(*context.request, std::move(text));
  http::Headers headers = ReplyHeaders(context, answer.headers.Get("Content-Type"));
  if (answer.headers.Has("Content-Encoding")) headers.Add("Content-Encoding", "gzip");
  context.status = 200;
  context.writer->Reply(200, std::move(headers), std::move(answer.body));
}

std::string Version() {
  return Shown(json::object{{"major", kMajor},
                            {"minor", kMinor},
                            {"emulationMajor", "1"},
                            {"emulationMinor", "36"},
                            {"minCompatibilityMajor", "1"},
                            {"minCompatibilityMinor", "35"},
                            {"gitVersion", kGitVersion},
                            {"gitCommit", Build().git_commit},
                            {"gitTreeState", Build().git_tree_state},
                            {"buildDate", Build().build_date},
                            {"goVersion", ""},
                            {"compiler", "c++"},
                            {"platform", kPlatform}});
}

std::string Configuration(const NonResourceRoutes::Options& options,
                          const std::vector<crypto::SigningKey>& keys) {
  std::set<std::string> algorithms;
  for (const crypto::SigningKey& key : keys) algorithms.insert(key.algorithm());
  return json::serialize(
      json::object{{"issuer", options.issuer},
                   {"jwks_uri", options.jwks_url},
                   {"response_types_supported", {"id_token"}},
                   {"subject_types_supported", {"public"}},
                   {"id_token_signing_alg_values_supported", json::value_from(algorithms)}});
}

std::string Jwks(const std::vector<crypto::SigningKey>& keys) {
  json::array all;
  std::set<std::string> seen;
  for (const crypto::SigningKey& key : keys) {
    if (!seen.insert(key.id()).second) continue;
    json::object one;
    for (const auto& member : key.Jwk()) one[member.first] = member.second;
    all.push_back(std::move(one));
  }
  return json::serialize(json::object{{"keys", std::move(all)}});
}

}  // namespace

NonResourceRoutes::NonResourceRoutes(Options options) : options_(std::move(options)), version_(Version()) {
  std::sort(options_.paths.begin(), options_.paths.end());
  SetKeys(std::move(options_.keys));
}

void NonResourceRoutes::SetKeys(std::vector<crypto::SigningKey> keys) {
  documents_.store(std::make_shared<const Documents>(Documents{Configuration(options_, keys), Jwks(keys)}));
}

bool NonResourceRoutes::Handle(Context& context) const {
  const std::string& path = context.info.path;
  if (path == "/version" || path == "/version/") {
    if (!IsRead(context)) {
      ReplyError(context, MethodNotAllowed());
      return true;
    }
    ReplyText(context, 200, "application/json", version_);
  } else if (path == "/metrics") {
    ReplyMetrics(context, metrics::Print());
  } else if (path == "/metrics/slis") {
    ReplyMetrics(context, component::HealthMetrics());
  } else if (path == "/.well-known/openid-configuration") {
    ReplyText(context, 200, "application/json", documents_.load()->configuration);
  } else if (path == "/openid/v1/jwks") {
    ReplyText(context, 200, "application/jwk-set+json", documents_.load()->jwks);
  } else if (path == "/" || path == "/index.html") {
    ReplyText(context, 200, "application/json",
              Shown(json::object{{"paths", json::value_from(options_.paths)}}));
  } else {
    return false;
  }
  return true;
}

}  // namespace keelson::apiserver
