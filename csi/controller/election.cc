#include "csi/controller/election.h"

#include <unistd.h>

#include "csi/controller/api_access.h"
#include "lib/base/log.h"

namespace keelson::csi::controller {
namespace {

constexpr std::chrono::seconds kTolerance{20};

}  // namespace

Result<> Elections::Lead(const std::string& lease, client::EventRecorder& events, std::stop_token stop,
                         const std::function<Result<>(std::stop_token stop)>& work) {
  client::LeaderElectionOptions options;
  options.ns = config_.leader_election_namespace.empty() ? OwnNamespace() : config_.leader_election_namespace;
  options.name = lease;
  options.identity = client::NewIdentity();
  options.lease_duration = config_.lease_duration;
  options.renew_deadline = config_.renew_deadline;
  options.retry_period = config_.retry_period;
  const client::RestClient api(transport_, config_.renew_deadline / 2);
  client::LeaderElector elector(api, events, options);
  {
    MutexLock lock(mutex_);
    electors_.insert(&elector);
  }
  Result<> result = elector.Run(stop, work, [&] {
    log::Error("The Lease is lost; another process may lead", {{"lease", lease}});
    ::_exit(1);
  });
  MutexLock lock(mutex_);
  electors_.erase(&elector);
  return result;
}

Result<> Elections::Healthy() const {
  MutexLock lock(mutex_);
  for (const client::LeaderElector* elector : electors_) {
    KEELSON_RETURN_IF_ERROR(elector->Healthy(kTolerance));
  }
  return {};
}

}  // namespace keelson::csi::controller
