// PodCertificateRequest: the requester must hold the private key, and the signer must issue a certificate
// for that key, with at most the requested lifetime.
#include <fmt/format.h>

#include "controlplane/registry/strategy.h"
#include "lib/api/duration.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/crypto/public_key.h"
#include "lib/k8s/text/pem.h"

namespace keelson::registry {
namespace {

namespace certificatesv1beta1 = api::certificates::v1beta1;
using Request = certificatesv1beta1::PodCertificateRequest;
using Spec = certificatesv1beta1::PodCertificateRequestSpec;
using Status = certificatesv1beta1::PodCertificateRequestStatus;
using crypto::IssuedCertificate;
using crypto::PublicKey;
using k8s::FieldErrors;
using k8s::Path;
using std::chrono::minutes;
using std::chrono::seconds;

// Prints like Go.
std::string Printed(const metav1::Time& time) {
  std::string text = api::FormatTime(time);
  text[text.find('T')] = ' ';
  text.pop_back();
  return text + " +0000 UTC";
}

class KeyCheck {
 public:
  KeyCheck(const Spec& spec, FieldErrors& errors) : spec_(spec), errors_(errors) {}

  // The key to certify, if its type is supported and the requester has proved possession.
  std::optional<PublicKey> Run() {
    const Path spec("spec");
    if (!spec_.stub_pkcs10_request().empty()) {
      const Path path = spec.Child("stubPKCS10Request");
      Result<PublicKey> key = PublicKey::OfRequest(spec_.stub_pkcs10_request());
      if (key) return CheckKind(*std::move(key), path);
      Refuse(path, key.error().Is(Code::kInvalid) ? "must be signed with the private key of its public key"
                                                  : "must be a valid PKCS#10 certificate signing request");
      return std::nullopt;
    }
    const Path path = spec.Child("pkixPublicKey");
    Result<PublicKey> key = PublicKey::FromDer(spec_.pkix_public_key());
    if (!key) {
      Refuse(path, "must be a valid PKIX-serialized public key");
      return std::nullopt;
    }
    std::optional<PublicKey> taken = CheckKind(*std::move(key), path);
    if (!taken || taken->HasSigned(spec_.pod_uid(), spec_.proof_of_possession())) return taken;
    Refuse(spec.Child("proofOfPossession"), "could not verify proof-of-possession signature");
    return std::nullopt;
  }

 private:
  void Refuse(const Path& path, std::string_view why, std::string value = "") {
    errors_.push_back(k8s::InvalidRaw(path, std::move(value), why));
  }

  std::optional<PublicKey> CheckKind(PublicKey key, const Path& path) {
    switch (key.kind()) {
      case PublicKey::Kind::kEd25519:
        return key;
      case PublicKey::Kind::kEcdsa:
        if (const std::string curve = key.curve(); curve != "P-256" && curve != "P-384" && curve != "P-521") {
          errors_.push_back(k8s::Invalid(path, "curve " + curve,
                                         "elliptic public keys must use curve P256, P384, or P521"));
          return std::nullopt;
        }
        return key;
      case PublicKey::Kind::kRsa:
        if (key.bits() != 3072 && key.bits() != 4096) {
          errors_.push_back(k8s::Invalid(path, fmt::format("{}-bit modulus", key.bits()),
                                         "RSA keys must have modulus size 3072 or 4096"));
          return std::nullopt;
        }
        return key;
      case PublicKey::Kind::kOther:
        break;
    }
    Refuse(path, "unknown public key type; supported types are Ed25519, ECDSA, and RSA");
    return std::nullopt;
  }

  const Spec& spec_;
  FieldErrors& errors_;
};

// Checks a newly issued chain. Stops at the first problem.
class ChainCheck {
 public:
  ChainCheck(const Request& request, WallTime now, FieldErrors& errors)
      : spec_(request.spec()), status_(request.status()), now_(now), errors_(errors) {}

  void Run() {
    std::string_view rest = status_.certificate_chain();
    std::optional<IssuedCertificate> leaf = Leaf(rest);
    if (!leaf) return;
    CheckNames(*leaf);
    FieldErrors ignored;  // the key was checked on creation
    const std::optional<PublicKey> wanted = KeyCheck(spec_, ignored).Run();
    if (!wanted || !(leaf->key == *wanted)) {
      return RefuseChain("leaf certificate was not issued to the requested public key");
    }
    if (CheckTimes(*leaf)) CheckRest(rest);
  }

 private:
  void Refuse(const char* field, std::string printed, std::string_view why) {
    errors_.push_back(k8s::InvalidRaw(Path("status").Child(field), std::move(printed), why));
  }
  void RefuseChain(std::string_view why) {
    Refuse("certificateChain", k8s::Quote(status_.certificate_chain()), why);
  }

  std::optional<IssuedCertificate> Leaf(std::string_view& rest) {
    const std::optional<k8s::PemBlock> block = k8s::NextPemBlock(rest);
    if (!block) {
      RefuseChain("issued certificate chain must contain at least one certificate");
    } else if (block->type != "CERTIFICATE") {
      RefuseChain("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
    } else if (auto leaf = IssuedCertificate::FromDer(block->bytes)) {
      return *std::move(leaf);
    } else {
      RefuseChain("leaf certificate does not parse as valid X.509");
    }
    return std::nullopt;
  }

  void CheckNames(const IssuedCertificate& leaf) {
    auto refuse = [&](const std::string& name, std::string_view why) {
      Refuse("certificateChain", k8s::Quote(name), why);
    };
    for (const std::string& name : leaf.dns_names) {
      if (name.empty()) refuse(name, "leaf certificate should not contain empty DNSName");
      if (name.find("..") != std::string::npos) {
        refuse(name, "leaf certificate's DNSName should not contain '..'");
      }
      if (name.starts_with('.') || name.ends_with('.')) {
        refuse(name, "leaf certificate's DNSName should not start or end with '.'");
      }
    }
    for (const std::string& address : leaf.emails) {
      const size_t at = address.rfind('@');
      if (at == std::string::npos || at == 0 || at + 1 == address.size() ||
          address.find_first_of(" <>,;\t\r\n") != std::string::npos) {
        refuse(address, "leaf certificate should not contain invalid EmailAddress");
      }
    }
  }

  bool CheckTimes(const IssuedCertificate& leaf) {
    const Path status("status");
    auto need = [&](bool has, const char* field, std::string_view detail) {
      if (!has) errors_.push_back(k8s::Required(status.Child(field), detail));
    };
    constexpr std::string_view kConsistent = "must be present and consistent with the issued certificate";
    need(status_.has_not_before(), "notBefore", kConsistent);
    need(status_.has_not_after(), "notAfter", kConsistent);
    need(status_.has_begin_refresh_at(), "beginRefreshAt",
         "must be present and in the range [notbefore+10min, notafter-10min]");
    if (!errors_.empty()) return false;
    const WallTime begin = api::FromTime(status_.not_before()), end = api::FromTime(status_.not_after()),
                   refresh = api::FromTime(status_.begin_refresh_at());
    const auto life = std::chrono::duration_cast<seconds>(leaf.not_after - leaf.not_before);
    struct {
      bool wrong;
      const char* field;
      std::string printed;
      std::string why;
    } const rules[] = {
        {begin != leaf.not_before, "notBefore", Printed(status_.not_before()),
         "must be set to the NotBefore time encoded in the leaf certificate"},
        {begin <= now_ - minutes(5) || begin >= now_ + minutes(5), "notBefore", Printed(status_.not_before()),
         "must be set to within 5 minutes of kube-apiserver's current time"},
        {end != leaf.not_after, "notAfter", Printed(status_.not_after()),
         "must be set to the NotAfter time encoded in the leaf certificate"},
        {life < std::chrono::hours(1), "certificateChain",
         api::FormatGoDuration(std::chrono::nanoseconds(life).count()),
         "leaf certificate lifetime must be >= 1 hour"},
        {life > seconds(spec_.max_expiration_seconds()), "certificateChain",
         api::FormatGoDuration(std::chrono::nanoseconds(life).count()),
         fmt::format("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({})",
                     spec_.max_expiration_seconds())},
        {refresh < begin + minutes(10), "beginRefreshAt", Printed(status_.begin_refresh_at()),
         "must be at least 10 minutes after status.notBefore"},
        {refresh > end - minutes(10), "beginRefreshAt", Printed(status_.begin_refresh_at()),
         "must be at least 10 minutes before status.notAfter"},
    };
    for (const auto& rule : rules) {
      if (!rule.wrong) continue;
      Refuse(rule.field, rule.printed, rule.why);
      return false;
    }
    return true;
  }

  void CheckRest(std::string_view rest) {
    while (const std::optional<k8s::PemBlock> block = k8s::NextPemBlock(rest)) {
      if (block->type != "CERTIFICATE") {
        return RefuseChain("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
      }
      if (!IssuedCertificate::FromDer(block->bytes)) {
        return RefuseChain("intermediate certificate does not parse as valid X.509");
      }
    }
  }

  const Spec& spec_;
  const Status& status_;
  const WallTime now_;
  FieldErrors& errors_;
};

bool IsIssued(const Request& request) {
  for (const metav1::Condition& condition : request.status().conditions()) {
    if (condition.type() == "Issued" && condition.status() == "True") return true;
  }
  return false;
}

class PodCertificateStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    auto& request = static_cast<Request&>(object);
    const auto& before = static_cast<const Request&>(old);
    // Only the status comes from the signer.
    metav1::ObjectMeta& meta = *request.mutable_metadata();
    *meta.mutable_labels() = before.metadata().labels();
    *meta.mutable_annotations() = before.metadata().annotations();
    *meta.mutable_finalizers() = before.metadata().finalizers();
    *meta.mutable_owner_references() = before.metadata().owner_references();
    for (metav1::Condition& condition : *request.mutable_status()->mutable_conditions()) {
      for (const metav1::Condition& known : before.status().conditions()) {
        if (known.type() == condition.type()) condition = known;
      }
      if (!condition.has_last_transition_time()) {
        *condition.mutable_last_transition_time() = api::ToTime(context.clock.Now());
      }
    }
  }

  void Check(const Context& context, Part part, const Message& object, const Message* old,
             FieldErrors& errors) const override {
    if (!errors.empty()) return;
    const auto& request = static_cast<const Request&>(object);
    if (!old) {
      KeyCheck(request.spec(), errors).Run();
    } else if (part == Part::kStatus && IsIssued(request) && !IsIssued(static_cast<const Request&>(*old))) {
      ChainCheck(request, context.clock.Now(), errors).Run();
    }
  }
};

}  // namespace

std::unique_ptr<Strategy> MakePodCertificateStrategy(const ResourceInfo& info) {
  if (info.group != "certificates.k8s.io" || info.resource != "podcertificaterequests") return nullptr;
  return std::make_unique<PodCertificateStrategy>(info);
}

}  // namespace keelson::registry
