#include "kubelet/certificate/pod_certificates.h"

#include <map>
#include <random>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/client/backoff.h"
#include "lib/crypto/certificates.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/pem.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

using Outcome = RequestState::Outcome;

namespace {

// A request that is not there so long after it was made has been deleted; before, a cache may lag.
constexpr std::chrono::minutes kAssumeDeleted(10);
constexpr std::chrono::minutes kOverdue(10);

// Certificates alone, without headers and what people write between them.
std::string CleanChain(std::string_view pem) {
  std::string out;
  while (auto block = k8s::NextPemBlock(pem)) out += k8s::PemText(block->type, block->bytes);
  return out;
}

}  // namespace

struct PodCertificates::Asked {
  const corev1::Pod& pod;
  const corev1::PodCertificateProjection& source;
};

struct PodCertificates::Record {
  enum class State { kInitial, kWaiting, kFresh, kRefreshing, kDenied, kFailed };
  State state = State::kInitial;
  std::string signer;
  CredentialBundle bundle;
  WallTime begin_refresh_at{}, not_after{};
  bool told_overdue = false, told_expired = false;
  // The request that is waited for.
  std::string key, request;
  WallTime abandon_at{};
  std::string reason, message;  // why there will be none

  bool HasBundle() const { return state == State::kFresh || state == State::kRefreshing; }
  bool IsOverdue(WallTime now) const { return now > begin_refresh_at + kOverdue; }
  const char* InMetrics(WallTime now) const {
    if (state == State::kDenied) return "denied";
    if (state == State::kFailed) return "failed";
    if (!HasBundle()) return "not_yet_issued";
    if (now > not_after) return "expired";
    return IsOverdue(now) ? "overdue_for_refresh" : "fresh";
  }
};

struct PodCertificates::Table {
  Mutex mutex;
  std::map<std::string, Record> records KEELSON_GUARDED_BY(mutex);  // by pod's UID, volume and index

  void Tell(WallTime now) {
    metrics::Family& family =
        metrics::Gauge("kubelet_podcertificate_states",
                       "Gauge vector reporting the number of pod certificate projected volume sources, "
                       "faceted by signer_name and state.",
                       {"signer_name", "state"});
    family.Clear();
    MutexLock lock(mutex);
    for (const auto& [key, record] : records) family.With({record.signer, record.InMetrics(now)}).Increment();
  }
};

std::chrono::nanoseconds PodCertificates::UpToFiveMinutes() {
  static thread_local std::minstd_rand random{std::random_device()()};
  constexpr std::chrono::nanoseconds kMost = std::chrono::minutes(5);
  return std::chrono::nanoseconds(
      std::uniform_int_distribution<std::chrono::nanoseconds::rep>(0, kMost.count() - 1)(random));
}

PodCertificates::PodCertificates(Dependencies deps, Clock& clock)
    : deps_(std::move(deps)),
      requests_(deps_.api, deps_.node_name),
      clock_(clock),
      table_(std::make_shared<Table>()) {
  metrics::OnCollect([weak = std::weak_ptr(table_), &clock] {
    if (auto table = weak.lock()) table->Tell(clock.Now());
  });
}
PodCertificates::~PodCertificates() = default;

Result<CredentialBundle> PodCertificates::Get(const corev1::Pod& pod, const corev1::Volume& volume,
                                              int index) {
  using State = Record::State;
  const auto& source = volume.volume_source().projected().sources(index).pod_certificate();
  const std::string key = pod.metadata().uid() + "/" + volume.name() + "/" + std::to_string(index);
  Record record;
  {
    MutexLock lock(table_->mutex);
    record = table_->records[key];
  }
  record.signer = source.signer_name();
  auto stepped = Step({pod, source}, record);
  {
    MutexLock lock(table_->mutex);
    table_->records[key] = record;
  }
  if (record.HasBundle()) {
    if (!stepped) {
      log::Warn("Cannot refresh a pod's certificate", {{"pod", api::KeyOf(pod)}, {"err", stepped.error()}});
    }
    return record.bundle;
  }
  if (record.state == State::kDenied || record.state == State::kFailed) {
    return Error(Code::kForbidden,
                 std::string("PodCertificateRequest was permanently ") + record.InMetrics(clock_.Now()) +
                     ": reason=" + k8s::Quote(record.reason) + " message=" + k8s::Quote(record.message));
  }
  return Error(Code::kUnavailable, "credential bundle is not issued yet" +
                                       (stepped ? std::string() : ": " + stepped.error().message()));
}

Result<> PodCertificates::Step(const Asked& asked, Record& record) {
  using State = Record::State;
  switch (record.state) {
    case State::kInitial:
      KEELSON_RETURN_IF_ERROR(Request(asked, record));
      record.state = State::kWaiting;
      return {};
    case State::kWaiting:
    case State::kRefreshing:
      return Look(asked, record);
    case State::kFresh:
      if (clock_.Now() < record.begin_refresh_at) return {};
      TellLateness(asked.pod, record);
      KEELSON_RETURN_IF_ERROR(Request(asked, record));
      record.state = State::kRefreshing;
      return {};
    case State::kDenied:
    case State::kFailed:
      return {};
  }
  return {};
}

Result<> PodCertificates::Request(const Asked& asked, Record& record) {
  const std::string node_uid = deps_.node_uid();
  if (node_uid.empty()) {
    return Error(Code::kUnavailable,
                 "while getting node object from local cache: node \"" + deps_.node_name + "\" not found");
  }
  auto made = [&]() -> Result<CreatedRequest> {
    auto key = crypto::NewPrivateKey(asked.source.key_type());
    if (!key) return key.error().Wrap("while generating keypair");
    record.key = std::move(*key);
    return requests_.Create(asked.pod, asked.source, node_uid, record.key);
  }();
  if (!made) {
    return made.error().Wrap(std::string("while creating ") + (record.HasBundle() ? "refresh" : "initial") +
                             " PodCertificateRequest");
  }
  record.request = std::move(made->name);
  record.abandon_at =
      made->created + kAssumeDeleted + std::chrono::duration_cast<WallTime::duration>(deps_.jitter());
  return {};
}

Result<> PodCertificates::Look(const Asked& asked, Record& record) {
  using State = Record::State;
  const std::string& ns = asked.pod.metadata().namespace_();
  const std::string name = ns + "/" + record.request;
  auto found = requests_.Get(ns, record.request);
  if (!found && found.error().Is(Code::kNotFound) && clock_.Now() > record.abandon_at) {
    record.state = record.HasBundle() ? State::kFresh : State::kInitial;
    return Error(Code::kUnavailable, "PodCertificateRequest \"" + name + "\" appears to have been deleted");
  }
  if (!found) return found.error().Wrap("while getting PodCertificateRequest \"" + name + "\"");
  if (found->outcome == Outcome::kPending) {
    if (record.HasBundle()) TellLateness(asked.pod, record);
    return {};
  }
  if (found->outcome == Outcome::kIssued) {
    Record issued;
    issued.state = State::kFresh;
    issued.signer = record.signer;
    issued.bundle = {std::move(record.key), CleanChain(found->chain)};
    issued.begin_refresh_at =
        found->begin_refresh_at + std::chrono::duration_cast<WallTime::duration>(deps_.jitter());
    issued.not_after = found->not_after;
    record = std::move(issued);
    return {};
  }
  const bool denied = found->outcome == Outcome::kDenied;
  record.state = denied ? State::kDenied : State::kFailed;
  record.reason = std::move(found->reason);
  record.message = std::move(found->message);
  deps_.warn(asked.pod, denied ? "Denied" : "Failed",
             "PodCertificateRequest " + name + (denied ? " was denied" : " failed") +
                 ", reason=" + k8s::Quote(record.reason) + ", message=" + k8s::Quote(record.message));
  return {};
}

void PodCertificates::TellLateness(const corev1::Pod& pod, Record& record) const {
  const WallTime now = clock_.Now();
  if (record.IsOverdue(now) && !std::exchange(record.told_overdue, true)) {
    deps_.warn(pod, "CertificateOverdueForRefresh", "PodCertificate refresh overdue");
  }
  if (now > record.not_after && !std::exchange(record.told_expired, true)) {
    deps_.warn(pod, "CertificateExpired", "PodCertificate expired");
  }
}

void PodCertificates::ForgetPod(const std::string& uid) {
  MutexLock lock(table_->mutex);
  std::erase_if(table_->records,
                [&](const auto& item) { return item.first.compare(0, uid.size() + 1, uid + "/") == 0; });
}

void PodCertificates::Watch(const std::function<void(const std::string& uid)>& changed,
                            std::stop_token stop) const {
  client::ReconnectBackoff backoff(Clock::Real());
  do {
    auto ended = requests_.Watch(changed, stop);
    if (!ended && !stop.stop_requested() && !ended.error().Is(Code::kTimeout)) {
      log::Debug("The watch of pods' certificate requests ended", {{"err", ended.error()}});
    }
  } while (client::SleepFor(Clock::Real(), backoff.Next(), stop));
}

}  // namespace keelson::kubelet
