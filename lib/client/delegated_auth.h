// Asks the API server who a token belongs to and what somebody may do: for daemons that serve pages of their
// own. Answers are kept for a while. Thread safe.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/client/rest.h"

namespace keelson::client {

struct ReviewedUser {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

struct DelegatedAuthOptions {  // how long answers are kept
  std::chrono::milliseconds authenticated{std::chrono::minutes(2)};
  std::chrono::milliseconds allowed{std::chrono::minutes(5)}, refused{std::chrono::seconds(30)};
};

class DelegatedAuth {
 public:
  // `who` is asked whose a token is, `may` what somebody may do: mostly the same.
  DelegatedAuth(RestClient who, RestClient may, DelegatedAuthOptions options = {},
                Clock& clock = Clock::Real());
  // TokenReview. kUnauthenticated: nobody's, or the API server cannot be asked.
  Result<ReviewedUser> Review(const std::string& token) EXCLUDES(mutex_);
  // SubjectAccessReview of `what`, which says all but who asks. kInternal: the API server cannot be asked.
  Result<bool> Allowed(const ReviewedUser& user, const authorizationv1::SubjectAccessReviewSpec& what)
      EXCLUDES(mutex_);

 private:
  struct Known {
    ReviewedUser user;
    bool authenticated;
    SteadyTime until;
  };
  struct Decision {
    bool allowed;
    SteadyTime until;
  };
  const RestClient who_, may_;
  const DelegatedAuthOptions options_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Known> tokens_ GUARDED_BY(mutex_);
  std::map<std::string, Decision> decisions_ GUARDED_BY(mutex_);
};

}  // namespace keelson::client
