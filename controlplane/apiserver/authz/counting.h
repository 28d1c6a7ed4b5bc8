// Counts an authorizer's decisions in apiserver_authorization_decisions_total.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {

class CountingAuthorizer : public Authorizer {
 public:
  // `type` as in configurations: "RBAC". `name` distinguishes authorizers of one type.
  CountingAuthorizer(const std::string& type, const std::string& name,
                     std::shared_ptr<const Authorizer> inner)
      : inner_(std::move(inner)),
        allowed_(Count(type, name, "allowed")),
        denied_(Count(type, name, "denied")) {}

  Decision Authorize(const Attributes& attributes) const override {
    Decision decision = inner_->Authorize(attributes);
    if (decision.allowed) allowed_.Increment();
    if (decision.denied) denied_.Increment();
    return decision;
  }
  UserRules RulesFor(const User& user, std::string_view ns) const override {
    return inner_->RulesFor(user, ns);
  }

 private:
  static metrics::Value& Count(const std::string& type, const std::string& name, const char* decision) {
    return metrics::Counter(
               "apiserver_authorization_decisions_total",
               "Total number of terminal decisions made by an authorizer split by authorizer type, "
               "name, and decision.",
               {"type", "name", "decision"})
        .With({type, name, decision});
  }

  const std::shared_ptr<const Authorizer> inner_;
  metrics::Value &allowed_, &denied_;
};

}  // namespace keelson::apiserver
