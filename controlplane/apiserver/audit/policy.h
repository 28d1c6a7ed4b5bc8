// The audit policy (--audit-policy-file): how much to record of which request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/request_info.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/base/error.h"

namespace keelson::apiserver::audit {

enum class Level { kNone, kMetadata, kRequest, kRequestResponse };
enum class Stage { kRequestReceived, kResponseStarted, kResponseComplete, kPanic };
std::string_view Name(Level level);
std::string_view Name(Stage stage);

struct Verdict {
  Level level = Level::kNone;
  unsigned omitted_stages = 0;  // one bit per Stage
  bool omit_managed_fields = false;

  bool Omits(Stage stage) const { return (omitted_stages >> static_cast<unsigned>(stage) & 1) != 0; }
};

class Policy {
 public:
  // Parses an audit.k8s.io/v1 Policy in YAML or JSON. The error lists all problems, in upstream's wording.
  static Result<Policy> Parse(std::string_view text);

  // Applies the first matching rule; without one, records nothing. `user` null: unknown.
  Verdict Evaluate(const User* user, const RequestInfo& request) const;

 private:
  struct Resources {
    std::string group;
    std::vector<std::string> resources, names;
  };
  struct Rule {
    Verdict verdict;
    std::vector<std::string> users, groups, verbs, namespaces, urls;
    std::vector<Resources> resources;
  };
  friend class PolicyReader;
  static bool Matches(const Rule& rule, const User* user, const RequestInfo& request);
  static bool MatchesResource(const Rule& rule, const RequestInfo& request);

  std::vector<Rule> rules_;
};

}  // namespace keelson::apiserver::audit
