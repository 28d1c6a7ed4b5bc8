// CEL in AuthorizationConfiguration: which requests an authorization webhook gets
// (k8s.io/apiserver/pkg/authorization/cel).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "lib/base/error.h"
#include "lib/cel/program.h"

namespace keelson::apiserver {

class AuthorizationConditions {  // immutable, thread safe
 public:
  // Adds a condition. kInvalid in upstream's words: "compilation failed: ...", "must evaluate to bool but got dyn".
  Result<> Add(std::string_view expression);
  bool empty() const { return programs_.empty(); }

  // Whether all conditions are true for a SubjectAccessReview, of which `spec` is the JSON; absent fields read as empty
  // ones. One that is false decides, whatever the others are; otherwise an error of one is an error of all.
  // `name`: of the webhook, for metrics.
  Result<bool> Match(const boost::json::object& spec, const std::string& name) const;

 private:
  std::vector<std::shared_ptr<const cel::Program>> programs_;
};

}  // namespace keelson::apiserver
