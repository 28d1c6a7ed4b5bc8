#include "kubelet/certificate/certificate_request.h"

#include <optional>
#include <thread>

#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/base/log.h"
#include "lib/client/backoff.h"

namespace keelson::kubelet {
namespace {

using Csr = api::certificates::v1::CertificateSigningRequest;

// A stop that comes with the caller's or when the time is up, whichever is first.
class Deadline {
 public:
  Deadline(std::chrono::seconds timeout, std::stop_token stop)
      : forward_(std::move(stop), [this] { source_.request_stop(); }),
        timer_([this, timeout](std::stop_token done) {
          if (client::SleepFor(Clock::Real(), timeout, done)) source_.request_stop();
        }) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::stop_callback<std::function<void()>> forward_;
  std::jthread timer_;
};

// Nullopt: not decided yet.
std::optional<Result<std::string>> Outcome(const Csr& request) {
  for (const auto& condition : request.status().conditions()) {
    const bool denied = condition.type() == "Denied";
    if (!denied && condition.type() != "Failed") continue;
    return Error(Code::kForbidden, "certificate signing request " + request.metadata().name() +
                                       (denied ? " is denied" : " failed") + ", reason: " +
                                       condition.reason() + ", message: " + condition.message());
  }
  if (request.status().certificate().empty()) return std::nullopt;
  return Result<std::string>(request.status().certificate());
}

// What the watch tells, until it ends.
std::optional<Result<std::string>> Follow(client::WatchStream& stream, const std::string& name,
                                          std::stop_token stop) {
  for (;;) {
    auto event = stream.Next(stop);
    if (!event) return std::nullopt;
    if (event->type == client::WatchEvent::Type::kBookmark) continue;
    if (event->type == client::WatchEvent::Type::kDeleted) {
      return Error(Code::kNotFound, "certificate signing request \"" + name + "\" was deleted");
    }
    Csr request;
    if (auto decoded = client::RestClient::DecodeInto(event->raw, request); !decoded) return decoded.error();
    if (auto outcome = Outcome(request)) return outcome;
  }
}

Result<std::string> AwaitCertificate(const client::RestClient& api, const std::string& name,
                                     std::stop_token stop) {
  client::ListOptions options;
  options.field_selector = "metadata.name=" + name;
  client::ReconnectBackoff backoff(Clock::Real());
  while (!stop.stop_requested()) {
    // Without a version, a watch begins with what is there.
    if (auto stream = api.Watch(api::ResourceOf<Csr>(), "", options)) {
      if (auto outcome = Follow(**stream, name, stop)) return *outcome;
    }
    client::SleepFor(Clock::Real(), backoff.Next(), stop);
  }
  return Error(Code::kTimeout, "timed out waiting for certificate signing request " + name + " to be issued");
}

Result<std::string> Submit(const client::RestClient& api, const CertificateTemplate& wanted,
                           const std::string& key_pem) {
  Csr request;
  if (wanted.name.empty()) {
    request.mutable_metadata()->set_generate_name("csr-");
  } else {
    request.mutable_metadata()->set_name(wanted.name);
  }
  KEELSON_ASSIGN_OR_RETURN(*request.mutable_spec()->mutable_request(),
                           crypto::NewCertificateRequest(key_pem, wanted.subject));
  request.mutable_spec()->set_signer_name(wanted.signer);
  for (const std::string& usage : wanted.usages) request.mutable_spec()->add_usages(usage);
  auto created = api.Create(request);
  if (created) return created->metadata().name();
  if (!wanted.name.empty() && created.error().Is(Code::kAlreadyExists)) return wanted.name;
  return created.error().Wrap("cannot create certificate signing request");
}

}  // namespace

CertificateTemplate ClientCertificateTemplate(const std::string& node_name) {
  return {"",
          "kubernetes.io/kube-apiserver-client-kubelet",
          {"digital signature", "client auth"},
          {"system:node:" + node_name, {"system:nodes"}, {}, {}}};
}

CertificateTemplate ServingCertificateTemplate(const std::string& node_name,
                                               std::vector<std::string> dns_names,
                                               std::vector<std::string> ip_addresses) {
  return {"",
          "kubernetes.io/kubelet-serving",
          {"digital signature", "server auth"},
          {"system:node:" + node_name, {"system:nodes"}, std::move(dns_names), std::move(ip_addresses)}};
}

Result<std::string> RequestCertificate(const client::RestClient& api, const CertificateTemplate& wanted,
                                       const std::string& key_pem, std::chrono::seconds timeout,
                                       std::stop_token stop) {
  Deadline deadline(timeout, std::move(stop));
  const client::RestClient bounded = api.With(deadline.token());
  KEELSON_ASSIGN_OR_RETURN(std::string name, Submit(bounded, wanted, key_pem));
  log::Info("Waiting for a certificate", {{"csr", name}, {"signer", wanted.signer}});
  KEELSON_ASSIGN_OR_RETURN(std::string certificate, AwaitCertificate(bounded, name, deadline.token()));
  if (!crypto::BelongTogether(certificate, key_pem)) {
    return Error(Code::kInvalid, "the certificate of signing request " + name + " is not for our key");
  }
  return certificate;
}

}  // namespace keelson::kubelet
