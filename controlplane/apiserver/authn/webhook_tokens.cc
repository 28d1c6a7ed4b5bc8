#include "controlplane/apiserver/authn/webhook_tokens.h"

#include <boost/json.hpp>

#include "controlplane/apiserver/webhook/expiring_cache.h"
#include "lib/api/codec/codec.h"
#include "lib/base/log.h"
#include "lib/crypto/digest.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

constexpr size_t kMaxCached = 4096;

User ToUser(const authenticationv1::UserInfo& info) {
  User user{info.username(), info.uid(), {info.groups().begin(), info.groups().end()}, {}};
  for (const auto& entry : info.extra()) {
    user.extra[entry.first] = {entry.second.items().begin(), entry.second.items().end()};
  }
  return user;
}

// JWTs and other local tokens never reach the cache.
metrics::Family& requests_total =
    metrics::Counter("authentication_token_cache_request_total", "Requests of the token cache.", {"status"});
metrics::Family& request_seconds = metrics::Histograms(
    "authentication_token_cache_request_duration_seconds", "Time that requests of the token cache took.",
    {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {"status"});
metrics::Family& fetches_total = metrics::Counter(
    "authentication_token_cache_fetch_total", "Fetches of what the token cache did not have.", {"status"});
metrics::Family& active_fetches = metrics::Gauge("authentication_token_cache_active_fetch_count",
                                                 "Fetches for the token cache under way.", {"status"});

void CountRequest(const char* status, SteadyTime begin) {
  requests_total.With({status}).Increment();
  const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
  request_seconds.HistogramWith({status}).Observe(took.count());
}

class Verifier : public TokenVerifier {
 public:
  Verifier(std::unique_ptr<WebhookClient> client, WebhookTokenOptions options, Clock& clock)
      : client_(std::move(client)), options_(std::move(options)), cache_(kMaxCached, clock) {}

  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override {
    // The cache key is a digest: the token itself is not stored.
    std::string key = crypto::Sha256(token);
    for (const std::string& audience : audiences) (key += '\n') += audience;
    const SteadyTime begin = SteadyTime::clock::now();
    if (auto known = cache_.Find(key)) {
      CountRequest("hit", begin);
      return *known;
    }
    active_fetches.With({"in_flight"}).Add(1);
    Result<std::optional<TokenAnswer>> answer = Ask(token, audiences);
    active_fetches.With({"in_flight"}).Add(-1);
    fetches_total.With({answer ? "ok" : "error"}).Increment();
    CountRequest("miss", begin);
    if (!answer) return answer.error();
    cache_.Put(key, *answer, options_.cache_ttl);
    return answer;
  }

 private:
  Result<std::optional<TokenAnswer>> Ask(std::string_view token, const std::vector<std::string>& audiences) {
    boost::json::object review{
        {"apiVersion", "authentication.k8s.io/" + options_.version},
        {"kind", "TokenReview"},
        {"spec", {{"token", token}, {"audiences", boost::json::value_from(audiences)}}}};
    Result<std::string> body = client_->Post(boost::json::serialize(review));
    if (!body) {
      log::Warn("Token webhook cannot be asked", {{"err", body.error()}});
      return Error(Code::kUnauthenticated, "token webhook cannot be asked");
    }
    authenticationv1::TokenReview answer;
    if (!api::DecodeJson(*body, answer)) {
      return Error(Code::kUnauthenticated, "token webhook's answer is no TokenReview");
    }
    const authenticationv1::TokenReviewStatus& status = answer.status();
    if (!status.authenticated()) {
      if (status.error().empty()) return std::optional<TokenAnswer>();
      return Error(Code::kUnauthenticated, status.error());
    }
    // A webhook without audience support vouches for the server's audiences.
    TokenAnswer out{ToUser(status.user()), {status.audiences().begin(), status.audiences().end()}};
    out.audiences = Intersect(audiences, out.audiences.empty() ? options_.api_audiences : out.audiences);
    if (out.audiences.empty() || out.user.name.empty()) return std::optional<TokenAnswer>();
    return std::optional<TokenAnswer>(std::move(out));
  }

  const std::unique_ptr<WebhookClient> client_;
  const WebhookTokenOptions options_;
  ExpiringCache<std::optional<TokenAnswer>> cache_;
};

}  // namespace

std::shared_ptr<TokenVerifier> NewWebhookTokenVerifier(std::unique_ptr<WebhookClient> client,
                                                       WebhookTokenOptions options, Clock& clock) {
  return std::make_shared<Verifier>(std::move(client), std::move(options), clock);
}

}  // namespace keelson::apiserver
