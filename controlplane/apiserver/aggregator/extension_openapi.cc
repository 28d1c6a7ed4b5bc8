#include "controlplane/apiserver/aggregator/extension_openapi.h"

#include "controlplane/apiserver/aggregator/aggregation_metrics.h"
#include "lib/api/openapi/extension.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::apiserver {

std::shared_ptr<const ExtensionOpenApi::Merged> ExtensionOpenApi::Current() {
  Parts now;
  for (const auto& [name, document] : documents_.All()) {
    if (document.fresh && document.openapi_v2) now.push_back(document.openapi_v2);
  }
  MutexLock lock(mutex_);
  if (now == parts_) return merged_;
  const SteadyTime begin = SteadyTime::clock::now();
  const PartChange change = now.size() > parts_.size()   ? PartChange::kAdd
                            : now.size() < parts_.size() ? PartChange::kDelete
                                                         : PartChange::kUpdate;
  std::vector<std::string> texts;
  crypto::Sha256Sum identity;
  for (const auto& part : now) {
    texts.push_back(*part);
    identity.Add(*part);
  }
  parts_ = std::move(now);
  merged_ = nullptr;
  if (texts.empty()) return merged_;
  const api::OpenApiAddition addition = api::MergeOpenApiV2(texts);
  if (addition.json.paths.empty()) return merged_;
  merged_ = std::make_shared<const Merged>(
      Merged{Hex(identity.Finish()), http::CompressPiece(addition.json.paths),
             http::CompressPiece(addition.json.schemas), http::CompressPiece(addition.protobuf)});
  ObserveOpenApiMerge(change, SteadyTime::clock::now() - begin);
  return merged_;
}

}  // namespace keelson::apiserver
