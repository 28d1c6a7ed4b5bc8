#include "lib/client/delegated_auth.h"

#include "lib/base/log.h"

namespace keelson::client {
namespace {

constexpr size_t kKept = 4096;

template <typename Cache>
void Prune(Cache& cache, SteadyTime now) {
  if (cache.size() < kKept) return;
  std::erase_if(cache, [&](const auto& entry) { return entry.second.until <= now; });
  if (cache.size() >= kKept) cache.clear();
}

}  // namespace

DelegatedAuth::DelegatedAuth(RestClient who, RestClient may, DelegatedAuthOptions options, Clock& clock)
    : who_(std::move(who)), may_(std::move(may)), options_(options), clock_(clock) {}

Result<ReviewedUser> DelegatedAuth::Review(const std::string& token) {
  const SteadyTime now = clock_.SteadyNow();
  {
    MutexLock lock(mutex_);
    auto at = tokens_.find(token);
    if (at != tokens_.end() && at->second.until > now) {
      if (at->second.authenticated) return at->second.user;
      return Error(Code::kUnauthenticated, "Unauthorized");
    }
  }
  authenticationv1::TokenReview review;
  review.mutable_spec()->set_token(token);
  Result<authenticationv1::TokenReview> answer = who_.Create(review);
  if (!answer) {
    log::Warn("Token review failed", {{"err", answer.error()}});
    return Error(Code::kUnauthenticated, "Unauthorized");
  }
  const auto& status = answer->status();
  Known known{{}, status.authenticated(), now + options_.authenticated};
  known.user.name = status.user().username();
  known.user.uid = status.user().uid();
  known.user.groups.assign(status.user().groups().begin(), status.user().groups().end());
  for (const auto& [key, value] : status.user().extra()) {
    known.user.extra[key].assign(value.items().begin(), value.items().end());
  }
  MutexLock lock(mutex_);
  Prune(tokens_, now);
  tokens_[token] = known;
  if (!known.authenticated) return Error(Code::kUnauthenticated, "Unauthorized");
  return known.user;
}

Result<bool> DelegatedAuth::Allowed(const ReviewedUser& user,
                                    const authorizationv1::SubjectAccessReviewSpec& what) {
  authorizationv1::SubjectAccessReview review;
  auto& spec = *review.mutable_spec();
  spec = what;
  spec.set_user(user.name);
  if (!user.uid.empty()) spec.set_uid(user.uid);
  for (const std::string& group : user.groups) spec.add_groups(group);
  // Sorted by name, so that equal specs give equal bytes.
  std::string key = spec.SerializeAsString();
  for (const auto& [name, values] : user.extra) {
    key += std::string(2, '\0') + name;
    for (const std::string& value : values) {
      key += '\0' + value;
      (*spec.mutable_extra())[name].add_items(value);
    }
  }
  const SteadyTime now = clock_.SteadyNow();
  {
    MutexLock lock(mutex_);
    auto at = decisions_.find(key);
    if (at != decisions_.end() && at->second.until > now) return at->second.allowed;
  }
  Result<authorizationv1::SubjectAccessReview> answer = may_.Create(review);
  if (!answer) {
    log::Warn("Access review failed", {{"user", user.name}, {"err", answer.error()}});
    return Error(Code::kInternal, "the API server cannot be asked: " + answer.error().message());
  }
  const bool allowed = answer->status().allowed();
  MutexLock lock(mutex_);
  Prune(decisions_, now);
  decisions_[key] = {allowed, now + (allowed ? options_.allowed : options_.refused)};
  return allowed;
}

}  // namespace keelson::client
