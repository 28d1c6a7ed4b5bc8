// An authorizer of tests.
#pragma once

#include <string_view>

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// Lets every user get pods, and do nothing else.
class PodReaders : public Authorizer {
 public:
  Decision Authorize(const Attributes& attributes) const override {
    return {attributes.request.resource == "pods" && attributes.request.verb == "get", "", ""};
  }
  UserRules RulesFor(const User&, std::string_view) const override { return {}; }
};

}  // namespace keelson::apiserver
