#include "kubelet/certificate/certificate_manager.h"

#include <algorithm>
#include <limits>
#include <random>

#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"

namespace keelson::kubelet {

using std::chrono::seconds;

namespace {

constexpr seconds kPatience = std::chrono::minutes(15);  // with one request
constexpr seconds kLookAtWish(1), kLookAtHosts(30), kFirstDelay(2), kLastDelay(32);

// Does it name all hosts that it should? More do no harm.
bool Covers(const crypto::CertificateSubject& has, const crypto::CertificateSubject& wanted) {
  auto all_of = [](const std::vector<std::string>& names, const std::vector<std::string>& in) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::find(in.begin(), in.end(), name) != in.end();
    });
  };
  return has.common_name == wanted.common_name && has.organizations == wanted.organizations &&
         all_of(wanted.dns_names, has.dns_names) && all_of(wanted.ip_addresses, has.ip_addresses);
}

double RandomPart() {
  static thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>(0, 1)(random);
}

std::string Text(WallTime time) { return api::FormatTime(api::ToTime(time)); }

metrics::Histogram& ServingLives() {
  return metrics::Histograms(
             "kubelet_certificate_manager_server_rotation_seconds",
             "Histogram of the number of seconds the previous certificate lived before being "
             "rotated.",
             {60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000})
      .HistogramWith();
}

}  // namespace

struct CertificateManager::Numbers {
  explicit Numbers(bool client)
      : ttl(metrics::Gauge(client ? "kubelet_certificate_manager_client_ttl_seconds"
                                  : "kubelet_certificate_manager_server_ttl_seconds",
                           client ? "Gauge of the TTL (time-to-live) of the Kubelet's client certificate."
                                  : "Gauge of the shortest TTL (time-to-live) of the Kubelet's serving "
                                    "certificate.")
                .With()),
        errors(metrics::Counter(client ? "kubelet_certificate_manager_client_expiration_renew_errors"
                                       : "kubelet_server_expiration_renew_errors",
                                "Counter of certificate renewal errors.")
                   .With()) {
    ttl.Set(std::numeric_limits<double>::infinity());
  }

  metrics::Value &ttl, &errors;
  std::atomic<WallTime> not_after{WallTime::max()};
};

CertificateManager::CertificateManager(client::RestClient api, CertificateStore store, Purpose purpose,
                                       GetTemplate wanted, std::function<void()> changed, Clock& clock)
    : api_(std::move(api)),
      store_(std::move(store)),
      purpose_(purpose),
      get_template_(std::move(wanted)),
      changed_(std::move(changed)),
      clock_(clock),
      numbers_(std::make_shared<Numbers>(purpose == Purpose::kClient)) {
  metrics::OnCollect([numbers = numbers_] {
    const WallTime end = numbers->not_after.load();
    if (end == WallTime::max()) return;
    numbers->ttl.Set(std::chrono::duration<double>(end - Clock::Real().Now()).count());
  });
}

void CertificateManager::Take(crypto::CertificateInfo certificate) {
  rotation_ = RotationTime(certificate, RandomPart());
  numbers_->not_after = certificate.not_after;
  log::Info("Certificate rotation deadline determined",
            {{"signer", purpose_ == Purpose::kClient ? "client" : "serving"},
             {"expiration", Text(certificate.not_after)},
             {"deadline", Text(rotation_)}});
  current_ = std::move(certificate);
}

std::optional<CertificateTemplate> CertificateManager::Due() const {
  std::optional<CertificateTemplate> wanted = get_template_();
  if (!wanted) return std::nullopt;
  if (current_ && clock_.Now() < rotation_ && Covers(current_->subject, wanted->subject)) return std::nullopt;
  return wanted;
}

std::chrono::nanoseconds CertificateManager::UntilNextLook() const {
  if (!current_) return kLookAtWish;
  // Clocks jump, so no wait is longer than an hour.
  const seconds most = purpose_ == Purpose::kServing ? kLookAtHosts : seconds(std::chrono::hours(1));
  return std::clamp<std::chrono::nanoseconds>(rotation_ - clock_.Now(), kLookAtWish, most);
}

Result<> CertificateManager::Rotate(const CertificateTemplate& wanted, std::stop_token stop) {
  log::Info("Rotating certificates", {{"signer", wanted.signer}});
  KEELSON_ASSIGN_OR_RETURN(std::string key, crypto::NewPrivateKey());
  KEELSON_ASSIGN_OR_RETURN(std::string certificate,
                           RequestCertificate(api_, wanted, key, kPatience, std::move(stop)));
  KEELSON_ASSIGN_OR_RETURN(crypto::CertificateInfo made, crypto::InspectCertificate(certificate));
  const WallTime now = clock_.Now();
  KEELSON_RETURN_IF_ERROR(store_.Store(certificate, key, now));
  if (current_ && purpose_ == Purpose::kServing) {
    ServingLives().Observe(std::chrono::duration<double>(now - current_->not_before).count());
  }
  Take(std::move(made));
  changed_();
  return {};
}

Result<> CertificateManager::Failed(const Error& error) {
  ++failures_;
  numbers_->errors.Increment();
  log::Error("Certificate rotation failed", {{"err", error}, {"attempt", failures_}});
  const bool expired = current_ && current_->not_after < clock_.Now();
  if (purpose_ == Purpose::kClient && expired && error.Is(Code::kUnauthenticated)) {
    return Error(
        Code::kUnauthenticated,
        "The currently active client certificate has expired and the server is responsive, exiting.");
  }
  return {};
}

Result<> CertificateManager::Run(std::stop_token stop) {
  if (auto found = store_.Load()) {
    Take(std::move(*found));
  } else if (!found.error().Is(Code::kNotFound)) {
    log::Warn("Could not load certificate", {{"path", store_.path()}, {"err", found.error()}});
  }
  while (!stop.stop_requested()) {
    std::chrono::nanoseconds pause = UntilNextLook();
    if (std::optional<CertificateTemplate> wanted = Due()) {
      Result<> rotated = Rotate(*wanted, stop);
      if (stop.stop_requested()) break;
      if (!rotated) KEELSON_RETURN_IF_ERROR(Failed(rotated.error()));
      if (rotated) failures_ = 0;
      pause =
          rotated ? UntilNextLook() : std::min(kFirstDelay * (1 << std::min(failures_ - 1, 4)), kLastDelay);
    }
    client::SleepFor(clock_, pause, stop);
  }
  return {};
}

}  // namespace keelson::kubelet
