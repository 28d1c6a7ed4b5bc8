#include "kubelet/volume/csi/volume_objects.h"

namespace keelson::kubelet::csi {

namespace {
constexpr int64_t kTokenSeconds = 3600;  // of a driver that does not say
}  // namespace

Result<std::shared_ptr<const CsiDriver>> VolumeObjects::Driver(const std::string& name) {
  auto driver = objects_.GetCsiDriver(name);
  if (!driver && driver.error().Is(Code::kNotFound)) return std::shared_ptr<const CsiDriver>();
  return driver;
}

Result<Values> VolumeObjects::PublishContext(const CsiDriver* driver, const VolumeSource& source,
                                             const std::string& node) {
  if (!NeedsAttaching(driver, source)) return Values();
  const std::string name = AttachmentName(source.handle, source.driver, node);
  KEELSON_ASSIGN_OR_RETURN(auto attachment, objects_.GetVolumeAttachment(name));
  const auto& metadata = attachment->status().attachment_metadata();
  return Values(metadata.begin(), metadata.end());
}

bool VolumeObjects::IsExhausted(const VolumeSource& source, const std::string& node) {
  constexpr int kResourceExhausted = 8;  // gRPC's code
  const auto driver = Driver(source.driver);
  if (!driver || !*driver || (*driver)->spec().node_allocatable_update_period_seconds() <= 0) return false;
  const auto attachment = objects_.GetVolumeAttachment(AttachmentName(source.handle, source.driver, node));
  if (!attachment) return false;
  const auto& status = (*attachment)->status();
  return !status.attached() && status.attach_error().error_code() == kResourceExhausted;
}

Result<Values> VolumeObjects::Secret(const std::optional<SecretRef>& ref, const char* field) {
  if (!ref) return Values();
  auto secret = objects_.GetSecret(ref->ns, ref->name);
  if (!secret) {
    return Error(Code::kUnavailable, std::string("fetching ") + field + " " + ref->ns + "/" + ref->name +
                                         " failed: " + secret.error().message());
  }
  return Values((*secret)->data().begin(), (*secret)->data().end());
}

Result<std::optional<std::string>> VolumeObjects::Tokens(const CsiDriver* driver, const corev1::Pod& pod) {
  if (!driver || driver->spec().token_requests().empty()) return std::optional<std::string>();
  std::map<std::string, ObjectSource::Token> tokens;
  for (const auto& request : driver->spec().token_requests()) {
    const int64_t seconds = request.has_expiration_seconds() ? request.expiration_seconds() : kTokenSeconds;
    KEELSON_ASSIGN_OR_RETURN(tokens[request.audience()], tokens_.GetToken(pod, request.audience(), seconds));
  }
  return std::optional(TokensJson(tokens));
}

}  // namespace keelson::kubelet::csi
