#include "controlplane/apiserver/authz/webhook.h"

#include <boost/json.hpp>

#include "controlplane/apiserver/webhook/expiring_cache.h"
#include "lib/api/codec/codec.h"
#include "lib/api/selector.h"
#include "lib/base/log.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
constexpr size_t kMaxCached = 8192;
// Larger requests are not cached.
constexpr size_t kMaxKey = 10000;

void Set(json::object& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}

json::array FieldRequirements(const api::FieldSelector& selector) {
  json::array out;
  for (const auto& term : selector.terms) {
    out.push_back({{"key", term.field}, {"operator", term.equal ? "In" : "NotIn"}, {"values", {term.value}}});
  }
  return out;
}

json::array LabelRequirements(const api::LabelSelector& selector) {
  using Op = api::LabelSelector::Op;
  json::array out;
  for (const auto& requirement : selector.requirements()) {
    const char* op = requirement.op == Op::kIn             ? "In"
                     : requirement.op == Op::kNotIn        ? "NotIn"
                     : requirement.op == Op::kExists       ? "Exists"
                     : requirement.op == Op::kDoesNotExist ? "DoesNotExist"
                                                           : nullptr;
    if (!op) continue;  // not expressible: dropping it widens the request
    json::object one{{"key", requirement.key}, {"operator", op}};
    if (!requirement.values.empty()) one["values"] = json::value_from(requirement.values);
    out.push_back(std::move(one));
  }
  return out;
}

json::object ResourceAttributes(const RequestInfo& request) {
  json::object out;
  Set(out, "namespace", request.ns);
  Set(out, "verb", request.verb);
  Set(out, "group", request.group);
  Set(out, "version", request.version);
  Set(out, "resource", request.resource);
  Set(out, "subresource", request.subresource);
  Set(out, "name", request.name);
  if (auto fields = api::FieldSelector::Parse(request.field_selector); fields && !fields->terms.empty()) {
    out["fieldSelector"] = json::object{{"requirements", FieldRequirements(*fields)}};
  }
  if (auto labels = api::LabelSelector::Parse(request.label_selector);
      labels && !labels->requirements().empty()) {
    if (json::array some = LabelRequirements(*labels); !some.empty()) {
      out["labelSelector"] = json::object{{"requirements", std::move(some)}};
    }
  }
  return out;
}

json::object Spec(const Attributes& attributes) {
  const User& user = attributes.user;
  json::object spec{{"user", user.name}};
  Set(spec, "uid", user.uid);
  if (!user.groups.empty()) spec["groups"] = json::value_from(user.groups);
  if (!user.extra.empty()) spec["extra"] = json::value_from(user.extra);
  if (attributes.request.is_resource) {
    spec["resourceAttributes"] = ResourceAttributes(attributes.request);
  } else {
    spec["nonResourceAttributes"] =
        json::object{{"path", attributes.request.path}, {"verb", attributes.request.verb}};
  }
  return spec;
}

metrics::Family& evaluations_total =
    metrics::Counter("apiserver_authorization_webhook_evaluations_total",
                     "Number of round-trips to authorization webhooks.", {"name", "result"});
metrics::Family& answer_seconds =
    metrics::Histograms("apiserver_authorization_webhook_duration_seconds", "Request latency in seconds.",
                        {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, {"name", "result"});
metrics::Family& fail_open_total =
    metrics::Counter("apiserver_authorization_webhook_evaluations_fail_open_total",
                     "NoOpinion results due to webhook timeout or error.", {"name", "result"});

class Webhook : public Authorizer {
 public:
  Webhook(std::unique_ptr<WebhookClient> client, WebhookAuthorizerOptions options, Clock& clock)
      : client_(std::move(client)), options_(std::move(options)), cache_(kMaxCached, clock) {}

  Decision Authorize(const Attributes& attributes) const override {
    json::object spec = Spec(attributes);
    if (!options_.conditions.empty()) {
      const Result<bool> match = options_.conditions.Match(spec, options_.name);
      if (!match) return Failed(match.error());
      if (!*match) return {};
    }
    std::string key = json::serialize(spec);
    if (auto known = cache_.Find(key)) return *known;
    Result<Decision> decision = Ask(std::move(spec));
    if (!decision) {
      log::Warn("Authorization webhook cannot be asked",
                {{"name", options_.name}, {"err", decision.error()}});
      return Failed(decision.error());
    }
    if (key.size() <= kMaxKey) {
      cache_.Put(key, *decision, decision->allowed ? options_.authorized_ttl : options_.unauthorized_ttl);
    }
    return *decision;
  }

  UserRules RulesFor(const User&, std::string_view) const override {
    return {{}, true, "webhook authorizer does not support user rule resolution"};
  }

 private:
  Decision Failed(const Error& error) const {
    Decision failed;
    failed.denied = options_.deny_on_failure;
    failed.evaluation_error = error.message();
    return failed;
  }

  Result<Decision> Ask(json::object spec) const {
    json::object review{{"apiVersion", "authorization.k8s.io/" + options_.version},
                        {"kind", "SubjectAccessReview"},
                        {"spec", std::move(spec)}};
    // The old version calls the groups "group".
    if (options_.version == "v1beta1") {
      json::object& said = review["spec"].as_object();
      if (json::value* groups = said.if_contains("groups")) {
        said["group"] = *groups;
        said.erase("groups");
      }
    }
    auto begin = SteadyTime::clock::now();
    Result<std::string> body = client_->Post(json::serialize(review));
    const char* result = body ? "success" : body.error().Is(Code::kTimeout) ? "timeout" : "error";
    Count(result, begin);
    if (!body && !options_.deny_on_failure) fail_open_total.With({options_.name, result}).Increment();
    if (!body) return body.error();
    authorizationv1::SubjectAccessReview answer;
    if (!api::DecodeJson(*body, answer)) {
      return Error(Code::kInternal, "the answer is no SubjectAccessReview");
    }
    const authorizationv1::SubjectAccessReviewStatus& status = answer.status();
    if (status.allowed() && status.denied()) {
      return Error(Code::kInternal, "webhook subject access review returned both allow and deny response");
    }
    Decision decision{status.allowed(), status.reason(), status.evaluation_error()};
    decision.denied = status.denied();
    return decision;
  }

  void Count(const char* result, SteadyTime begin) const {
    evaluations_total.With({options_.name, result}).Increment();
    std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
    answer_seconds.HistogramWith({options_.name, result}).Observe(took.count());
  }

  const std::unique_ptr<WebhookClient> client_;
  const WebhookAuthorizerOptions options_;
  mutable ExpiringCache<Decision> cache_;
};

}  // namespace

std::shared_ptr<const Authorizer> NewWebhookAuthorizer(std::unique_ptr<WebhookClient> client,
                                                       WebhookAuthorizerOptions options, Clock& clock) {
  return std::make_shared<Webhook>(std::move(client), std::move(options), clock);
}

}  // namespace keelson::apiserver
