#include "controlplane/controllers/job/testing/job_world.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::controllers {

JobWorld::JobWorld() {
  cluster.fake->SetInterceptor([this](const client::ApiRequest& request) { return Intercept(request); });
}

std::optional<Result<client::ApiResponse>> JobWorld::Intercept(const client::ApiRequest& request) {
  if (of_test_) return std::nullopt;
  if (gate && !gate(request)) return client::FakeApi::Refuse(Error(Code::kUnavailable, "killed"));
  if (request.method != "PUT" || !request.target.ends_with("/jobs/j/status")) return std::nullopt;
  batchv1::Job written;
  Result<> decoded = api::DecodeProtobuf(request.body, written);
  Result<batchv1::Job> stored = cluster.api.Get<batchv1::Job>("default", "j");
  if (!decoded || !stored || stored->metadata().resource_version() != written.metadata().resource_version()) {
    return std::nullopt;  // the API rejects it
  }
  k8s::FieldErrors errors = k8s::ValidateStatusUpdate(written, *stored);
  if (errors.empty()) return std::nullopt;
  MutexLock lock(mutex_);
  problems_ += errors[0].ToString() + "\n";
  return client::FakeApi::Refuse(Error(Code::kInvalid, errors[0].ToString()));
}

void JobWorld::Start(const batchv1::Job& job) {
  of_test_ = true;
  EXPECT_TRUE(cluster.api.Create(job));
  of_test_ = false;
  Restart();
}

void JobWorld::Restart() {
  cluster.Stop();
  jobs_ = &cluster.Make<JobController>();
  orphans_ = &cluster.Make<JobOrphanController>();
  cluster.Start();
}

void JobWorld::Change(const std::function<void(batchv1::Job&)>& change) {
  batchv1::Job job = Job();
  change(job);
  of_test_ = true;
  EXPECT_TRUE(cluster.api.Update(job));
  of_test_ = false;
}

void JobWorld::Drain() { cluster.Drain(Controllers()); }

void JobWorld::Wait(std::chrono::seconds time) {
  constexpr std::chrono::seconds kStep{2};  // at least the batching period of pod changes
  for (; time > time.zero(); time -= kStep) cluster.Advance(std::min(time, kStep), Controllers());
}

void JobWorld::Round(const std::function<int(const corev1::Pod&)>& exit_code) {
  of_test_ = true;
  for (corev1::Pod pod : Pods()) {
    const metav1::ObjectMeta& meta = pod.metadata();
    const bool ended = k8s::IsTerminal(pod);
    if (k8s::IsTerminating(pod)) {
      if (!ended) EndPod(pod, 137, cluster.clock.Now());
      if (!ended) cluster.fake->Put(pod);
      (void)cluster.api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.grace_period_seconds = 0});
    } else if (pod.spec().node_name().empty()) {
      pod.mutable_spec()->set_node_name("n1");
      MakeReady(pod, cluster.clock.Now());
      cluster.fake->Put(pod);
    } else if (!ended) {
      const int code = exit_code(pod);
      if (code < 0) continue;
      EndPod(pod, code, cluster.clock.Now());
      cluster.fake->Put(pod);
    }
  }
  of_test_ = false;
  Wait(std::chrono::seconds(10));
}

std::string JobWorld::Problems() {
  std::string out;
  for (const std::string& error : cluster.errors) {
    if (error.find("killed") == std::string::npos) out += error + "\n";
  }
  MutexLock lock(mutex_);
  return out + problems_;
}

}  // namespace keelson::controllers
