// Authenticates and authorizes requests through the API server, for daemons that serve pages of their own.
// Caches the answers. Thread safe.
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

struct DelegatedAuthOptions {  // how long answers are cached
  std::chrono::milliseconds authenticated{std::chrono::minutes(2)};
  std::chrono::milliseconds allowed{std::chrono::minutes(5)}, refused{std::chrono::seconds(30)};
};

class DelegatedAuth {
 public:
  // `who` sends TokenReviews, `may` SubjectAccessReviews: mostly the same client.
  DelegatedAuth(RestClient who, RestClient may, DelegatedAuthOptions options = {},
                Clock& clock = Clock::Real());
  // TokenReview. kUnauthenticated: the token is invalid, or the API server is unavailable.
  Result<ReviewedUser> Review(const std::string& token) KEELSON_EXCLUDES(mutex_);
  // SubjectAccessReview of `what`, which has everything but the user. kInternal: the API server is
  // unavailable.
  Result<bool> Allowed(const ReviewedUser& user, const authorizationv1::SubjectAccessReviewSpec& what)
      KEELSON_EXCLUDES(mutex_);

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
  std::map<std::string, Known> tokens_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, Decision> decisions_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::client
