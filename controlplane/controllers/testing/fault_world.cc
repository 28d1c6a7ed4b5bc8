#include "controlplane/controllers/testing/fault_world.h"

#include <thread>

#include "controlplane/controllers/job/testing/jobs.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

thread_local bool of_test = false;  // requests of this thread come from the test

// Lists and watches belong to the informers; their retries have their own tests.
bool IsInformers(const client::ApiRequest& request) {
  if (request.method != "GET") return false;
  const std::string path = request.target.substr(0, request.target.find('?'));
  return path.size() != request.target.size() || path.find("/namespaces/") == std::string::npos;
}

}  // namespace

FaultWorld::FaultWorld(uint32_t seed, Make make) : make_(std::move(make)), dice_(seed + 1) {
  cluster.fake->SetInterceptor([this](const client::ApiRequest& request) { return Intercept(request); });
}

void FaultWorld::Own(const std::function<void()>& act) {
  of_test = true;
  act();
  of_test = false;
}

int FaultWorld::Roll(int sides) {
  MutexLock lock(mutex_);
  return std::uniform_int_distribution<int>(0, sides - 1)(dice_);
}

void FaultWorld::Note(const std::string& problem) {
  MutexLock lock(mutex_);
  if (problems_.find(problem) == std::string::npos) problems_ += problem + "\n";
}

std::string FaultWorld::Problems() {
  MutexLock lock(mutex_);
  return problems_;
}

bool FaultWorld::Faulty() {
  MutexLock lock(mutex_);
  return faults_;
}

FaultWorld::Fault FaultWorld::FaultFor(const client::ApiRequest& request) {
  MutexLock lock(mutex_);
  if (!faults_) return Fault::kNone;
  auto roll = [this](int sides) KEELSON_REQUIRES(mutex_) {
    return std::uniform_int_distribution<int>(0, sides - 1)(dice_);
  };
  if (dead_) return Fault::kUnanswered;
  const bool write = request.method != "GET";
  // Killed before or after the request reaches the API.
  if (write && roll(40) == 0) {
    dead_ = true;
    return roll(2) == 0 ? Fault::kUnanswered : Fault::kAnswerLost;
  }
  switch (roll(16)) {
    case 0:
    case 1:
      return Fault::kRefused;
    case 2:
      return write ? Fault::kAnswerLost : Fault::kUnanswered;
    case 3:
      return Fault::kUnanswered;
    case 4:
      return request.method == "PUT" || request.method == "PATCH" ? Fault::kConflict : Fault::kNone;
    default:
      return Fault::kNone;
  }
}

std::optional<corev1::Pod> FaultWorld::PodOf(const client::ApiRequest& deletion) {
  constexpr std::string_view kPods = "/api/v1/namespaces/default/pods/";
  if (deletion.method != "DELETE" || !deletion.target.starts_with(kPods)) return std::nullopt;
  const std::string name = deletion.target.substr(kPods.size(), deletion.target.find('?') - kPods.size());
  Result<corev1::Pod> pod = cluster.api.Get<corev1::Pod>("default", name);
  if (!pod) return std::nullopt;
  return *std::move(pod);
}

Result<client::ApiResponse> FaultWorld::Pass(const client::ApiRequest& request) {
  of_test = true;
  const std::optional<corev1::Pod> deleted = on_deleted ? PodOf(request) : std::nullopt;
  Result<client::ApiResponse> response = cluster.fake->Do(request, std::chrono::seconds(1), {});
  if (request.method == "POST" && request.target.ends_with("/pods") && on_pod) on_pod();
  if (deleted) on_deleted(*deleted);
  of_test = false;
  return response;
}

std::optional<Result<client::ApiResponse>> FaultWorld::Intercept(const client::ApiRequest& request) {
  if (of_test || IsInformers(request)) return std::nullopt;
  constexpr std::pair<Code, const char*> kRefusals[] = {{Code::kInternal, "etcdserver: leader changed"},
                                                        {Code::kTooManyRequests, "too many requests"},
                                                        {Code::kUnavailable, "the server is starting"}};
  switch (FaultFor(request)) {
    case Fault::kNone:
      return Pass(request);
    case Fault::kRefused: {
      const auto& [code, message] = kRefusals[Roll(3)];
      return client::FakeApi::Refuse(Error(code, message));
    }
    case Fault::kConflict:
      return client::FakeApi::Refuse(Error(Code::kConflict, "the object has been modified"));
    case Fault::kUnanswered:
      return Result<client::ApiResponse>(Error(Code::kTimeout, "no answer"));
    case Fault::kAnswerLost:
      break;
  }
  (void)Pass(request);
  return Result<client::ApiResponse>(Error(Code::kTimeout, "no answer"));
}

void FaultWorld::Restart() {
  cluster.Stop();
  controllers_ = make_(cluster);
  {
    MutexLock lock(mutex_);
    dead_ = false;
  }
  cluster.Start();
}

// Informers resume their watches, or list again when the events have expired.
void FaultWorld::LoseWatches() {
  if (Roll(2) == 0) cluster.fake->Compact();
  cluster.fake->EndWatches();
  // Informers wait before they retry.
  std::jthread time([this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      cluster.clock.Advance(std::chrono::milliseconds(200));
      std::this_thread::yield();
    }
  });
  cluster.Settle();
}

// Small steps, so that short requeues become due.
void FaultWorld::Work() {
  for (int i = 0; i < 6; ++i) cluster.Advance(std::chrono::seconds(2 + Roll(8)), controllers_);
  bool dead = false;
  {
    MutexLock lock(mutex_);
    dead = dead_;
  }
  if (dead) Restart();
}

void FaultWorld::Kubelet() {
  const bool faults = Faulty();
  auto slow = [&] { return faults && Roll(4) == 0; };
  for (corev1::Pod pod : cluster.List<corev1::Pod>("default")) {
    const metav1::ObjectMeta& meta = pod.metadata();
    if (slow()) continue;
    if (k8s::IsTerminating(pod)) {
      if (!k8s::IsTerminal(pod)) {
        EndPod(pod, 137, cluster.clock.Now());
        cluster.fake->Put(pod);
      }
      (void)cluster.api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.grace_period_seconds = 0});
    } else if (k8s::IsTerminal(pod)) {
      continue;
    } else if (!k8s::IsReady(pod)) {
      pod.mutable_spec()->set_node_name("n1");
      MakeReady(pod, cluster.clock.Now());
      cluster.fake->Put(pod);
    } else if (fate) {
      const Fate next = fate(pod);
      if (next == Fate::kIsDeleted) (void)cluster.api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {});
      if (next != Fate::kSucceeds && next != Fate::kFails) continue;
      EndPod(pod, next == Fate::kSucceeds ? 0 : 1, cluster.clock.Now());
      cluster.fake->Put(pod);
    }
  }
}

void FaultWorld::Round() {
  if (Faulty() && Roll(5) == 0) LoseWatches();
  Work();
  Own([this] { Kubelet(); });
}

void FaultWorld::Calm() {
  {
    MutexLock lock(mutex_);
    faults_ = false;
  }
  Restart();
  for (int i = 0; i < 40; ++i) Round();
}

void CheckOwners(FaultWorld& world, const std::vector<corev1::Pod>& pods) {
  for (const corev1::Pod& pod : pods) {
    int controllers = 0;
    for (const metav1::OwnerReference& owner : pod.metadata().owner_references()) {
      controllers += owner.controller();
    }
    if (controllers != 1) {
      world.Note("pod " + pod.metadata().name() + " has " + std::to_string(controllers) + " controllers");
    }
  }
}

}  // namespace keelson::controllers
