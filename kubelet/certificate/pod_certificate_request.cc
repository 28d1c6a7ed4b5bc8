#include "kubelet/certificate/pod_certificate_request.h"

#include "kubelet/certificate/json_answer.h"
#include "lib/api/codec/text_forms.h"
#include "lib/base/wall_time.h"
#include "lib/crypto/certificates.h"

namespace keelson::kubelet {

namespace {

constexpr char kVersion[] = "certificates.k8s.io/v1beta1";
constexpr char kResource[] = "podcertificaterequests";
constexpr std::chrono::minutes kSilence(10);  // of a watch; then it is restarted

std::string Target(const std::string& ns, const std::string& name = "") {
  std::string out = std::string("/apis/") + kVersion + "/namespaces/" + ns + "/" + kResource;
  return name.empty() ? out : out + "/" + name;
}

// What stands between the first and the last line of PEM is the DER in base64.
std::string Base64Of(const std::string& pem) {
  const size_t begin = pem.find('\n'), end = pem.rfind("-----END");
  std::string out = pem.substr(begin, end - begin);
  std::erase(out, '\n');
  return out;
}

Result<WallTime> TimeAt(const json::object& object, const char* name) {
  auto instant = api::ParseTime(Text(object, name), false);
  if (!instant) return instant.error().Wrap(name);
  return WallTimeOf(instant->seconds);
}

json::object SpecOf(const corev1::Pod& pod, const corev1::PodCertificateProjection& source) {
  json::object spec = {{"signerName", source.signer_name()},
                       {"podName", pod.metadata().name()},
                       {"podUID", pod.metadata().uid()}};
  if (source.has_max_expiration_seconds()) spec["maxExpirationSeconds"] = source.max_expiration_seconds();
  json::object annotations;
  for (const auto& [key, value] : source.user_annotations()) annotations[key] = value;
  if (!annotations.empty()) spec["unverifiedUserAnnotations"] = std::move(annotations);
  return spec;
}

json::object MetadataOf(const corev1::Pod& pod) {
  const metav1::ObjectMeta& meta = pod.metadata();
  json::array owners;
  owners.push_back(
      json::object({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", meta.name()}, {"uid", meta.uid()}}));
  return {{"generateName", "req-"}, {"namespace", meta.namespace_()}, {"ownerReferences", owners}};
}

}  // namespace

Result<CreatedRequest> PodCertificateRequests::Create(const corev1::Pod& pod,
                                                      const corev1::PodCertificateProjection& source,
                                                      const std::string& node_uid,
                                                      const std::string& key_pem) const {
  const std::string& ns = pod.metadata().namespace_();
  const std::string& account = pod.spec().service_account_name();
  auto known = api_.Get<corev1::ServiceAccount>(ns, account);
  if (!known) return known.error().Wrap("while fetching service account");
  KEELSON_ASSIGN_OR_RETURN(std::string stub, crypto::NewCertificateRequest(key_pem, {}));
  json::object spec = SpecOf(pod, source);
  spec["serviceAccountName"] = account;
  spec["serviceAccountUID"] = known->metadata().uid();
  spec["nodeName"] = node_name_;
  spec["nodeUID"] = node_uid;
  spec["stubPKCS10Request"] = Base64Of(stub);
  client::ApiRequest request;
  request.method = "POST";
  request.target = Target(ns);
  request.body = json::serialize(json::object({{"apiVersion", kVersion},
                                               {"kind", "PodCertificateRequest"},
                                               {"metadata", MetadataOf(pod)},
                                               {"spec", std::move(spec)}}));
  auto stored = AskJson(api_.transport(), std::move(request));
  if (!stored) return stored.error().Wrap("while creating on API");
  const json::object& meta = Member(*stored, "metadata");
  KEELSON_ASSIGN_OR_RETURN(WallTime created, TimeAt(meta, "creationTimestamp"));
  return CreatedRequest{Text(meta, "name"), created};
}

Result<RequestState> PodCertificateRequests::Get(const std::string& ns, const std::string& name) const {
  using Outcome = RequestState::Outcome;
  client::ApiRequest request;
  request.target = Target(ns, name);
  KEELSON_ASSIGN_OR_RETURN(json::object object, AskJson(api_.transport(), std::move(request)));
  const json::object& status = Member(object, "status");
  RequestState out;
  ForEachObject(status, "conditions", [&out](const json::object& condition) {
    const std::string type = Text(condition, "type");
    const Outcome outcome = type == "Denied"   ? Outcome::kDenied
                            : type == "Failed" ? Outcome::kFailed
                            : type == "Issued" ? Outcome::kIssued
                                               : Outcome::kPending;
    if (out.outcome != Outcome::kPending || outcome == Outcome::kPending) return;
    out.outcome = outcome;
    out.reason = Text(condition, "reason");
    out.message = Text(condition, "message");
  });
  if (out.outcome != Outcome::kIssued) return out;
  out.chain = Text(status, "certificateChain");
  KEELSON_ASSIGN_OR_RETURN(out.begin_refresh_at, TimeAt(status, "beginRefreshAt"));
  KEELSON_ASSIGN_OR_RETURN(out.not_after, TimeAt(status, "notAfter"));
  return out;
}

Result<> PodCertificateRequests::Watch(const std::function<void(const std::string& uid)>& changed,
                                       std::stop_token stop) const {
  client::ApiRequest request;
  request.accept = "application/json";
  request.target = std::string("/apis/") + kVersion + "/" + kResource +
                   "?watch=true&fieldSelector=spec.nodeName%3D" + node_name_;
  KEELSON_ASSIGN_OR_RETURN(auto stream, api_.transport().Open(request, stop));
  json::stream_parser parser;
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(const std::string bytes, stream->Read(stop, kSilence));
    if (bytes.empty()) return {};
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t line = std::min(rest.find('\n'), rest.size() - 1) + 1;
      boost::system::error_code failed;
      parser.write(rest.data(), line, failed);
      const bool whole = rest[line - 1] == '\n';
      rest.remove_prefix(line);
      if (failed) return Error(Code::kInternal, "what the watch tells is no JSON: " + failed.message());
      if (!whole || !parser.done()) continue;
      const json::value event = parser.release();
      parser.reset();
      if (event.is_object()) changed(Text(Member(Member(event.get_object(), "object"), "spec"), "podUID"));
    }
  }
}

}  // namespace keelson::kubelet
