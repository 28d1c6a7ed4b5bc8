#include "kubelet/volume/trust_anchors.h"

#include <algorithm>
#include <random>
#include <set>

#include "lib/api/selector.h"
#include "lib/k8s/text/pem.h"

namespace keelson::kubelet {

namespace {

std::string Normalize(const std::vector<TrustBundle>& bundles) {
  static const auto kSeed = std::random_device()();
  std::set<std::string> unique;
  for (const TrustBundle& bundle : bundles) {
    std::string_view rest = bundle.pem;
    while (auto block = k8s::NextPemBlock(rest)) unique.insert(std::move(block->bytes));
  }
  std::vector<std::string> anchors(unique.begin(), unique.end());
  std::shuffle(anchors.begin(), anchors.end(), std::mt19937(kSeed));
  std::string out;
  for (const std::string& der : anchors) out += k8s::PemText("CERTIFICATE", der);
  return out;
}

Result<std::string> ByName(ObjectSource& objects, const corev1::ClusterTrustBundleProjection& source) {
  auto bundle = objects.GetTrustBundles(source.name());
  if (bundle) return Normalize(*bundle);
  if (bundle.error().Is(Code::kNotFound) && source.optional()) return std::string();
  if (bundle.error().Is(Code::kUnimplemented)) return bundle.error();
  return bundle.error().Wrap("while getting ClusterTrustBundle");
}

Result<std::string> BySigner(ObjectSource& objects, const corev1::ClusterTrustBundleProjection& source) {
  // No selector chooses nothing, an empty one everything.
  api::LabelSelector selector = api::LabelSelector::Nothing();
  if (source.has_label_selector()) {
    auto parsed = api::LabelSelector::From(source.label_selector());
    if (!parsed) return parsed.error().Wrap("while parsing label selector");
    selector = std::move(*parsed);
  }
  KEELSON_ASSIGN_OR_RETURN(std::vector<TrustBundle> bundles, objects.GetTrustBundles(""));
  std::erase_if(bundles, [&](const TrustBundle& bundle) {
    return bundle.signer_name != source.signer_name() || !selector.Matches(bundle.labels);
  });
  if (!bundles.empty() || source.optional()) return Normalize(bundles);
  return Error(Code::kInvalid,
               "combination of signerName and labelSelector matched zero ClusterTrustBundles");
}

}  // namespace

Result<std::string> TrustAnchors(ObjectSource& objects, const corev1::ClusterTrustBundleProjection& source) {
  if (source.has_name()) return ByName(objects, source);
  if (source.has_signer_name()) return BySigner(objects, source);
  return Error(Code::kInvalid, "ClusterTrustBundle projection requires either name or signerName to be set");
}

}  // namespace keelson::kubelet
