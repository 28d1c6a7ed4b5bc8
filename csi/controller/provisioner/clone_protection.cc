#include "csi/controller/provisioner/clone_protection.h"

#include "csi/controller/model/names.h"
#include "csi/controller/provisioner/content_source.h"
#include "lib/api/meta.h"

namespace keelson::csi::controller {
namespace {

// The claim that this one is a clone of; empty: it is none.
std::string SourceKey(const Claim& claim) {
  const Result<DataSource> source = SourceOf(claim);
  if (!source || source->kind != DataSource::Kind::kClaim) return "";
  return api::KeyOf(claim.metadata().namespace_(), source->name);
}

}  // namespace

CloneProtection::CloneProtection(const Environment& environment)
    : Controller("cloning-protection", environment), claims_(environment.informers.Get<Claim>()) {
  claims_.AddIndex("clone-of", [](const Claim& claim) {
    const std::string source = SourceKey(claim);
    return source.empty() ? std::vector<std::string>() : std::vector{source};
  });
  claims_.AddHandler([this](const client::Change<Claim>& change) {
    if (change.new_object && HasFinalizer(change.new_object->metadata(), kCloningProtection)) {
      queue().Add(change.key);
    }
    if (const std::string source = SourceKey(change.object()); !source.empty()) queue().Add(source);
  });
}

Result<Requeue> CloneProtection::Reconcile(const std::string& key, std::stop_token stop) {
  const auto claim = claims_.Get(key);
  if (!claim || !HasFinalizer(claim->metadata(), kCloningProtection)) return Requeue{};
  for (const auto& clone : claims_.ByIndex("clone-of", key)) {
    if (clone->status().phase() != "Bound" && clone->spec().volume_name().empty()) return Requeue{};
  }
  const auto& meta = claim->metadata();
  auto freed = client::UpdateWithRetry<Claim>(
      Api(stop), meta.namespace_(), meta.name(), "", [&](Claim& live) -> Result<bool> {
        // A clone that the cache does not know yet has changed the claim: its event leads here again.
        if (live.metadata().resource_version() != meta.resource_version()) return false;
        return DropFinalizer(*live.mutable_metadata(), kCloningProtection);
      });
  if (!freed && !freed.error().Is(Code::kNotFound)) return freed.error();
  return Requeue{};
}

}  // namespace keelson::csi::controller
