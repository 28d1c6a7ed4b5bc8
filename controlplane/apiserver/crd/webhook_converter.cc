#include "controlplane/apiserver/crd/webhook_converter.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/apiserver/crd/conversion_review.h"
#include "lib/api/codec/codec.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

using apiextensions::Versioned;

constexpr std::chrono::seconds kCallTimeout{30};
constexpr size_t kCallBytes = 1u << 20, kCallObjects = 500;
constexpr size_t kMaxConfigs = 4096;

metrics::Family& call_seconds = metrics::Histograms(
    "apiserver_crd_conversion_webhook_duration_seconds", "CRD webhook conversion duration in seconds",
    metrics::ExponentialBuckets(0.001, 2, 15), {"crd_name", "from_version", "succeeded", "to_version"});

std::string KindOf(const Versioned& object) {
  return fmt::format("{}, Kind={}", object.row->ApiVersion(), object.row->kind);
}

Error Wrong(const Versioned& object, std::string_view what, std::string_view why) {
  return Error(Code::kInternal, fmt::format("conversion webhook for {} {}{}", KindOf(object), what, why));
}

}  // namespace

WebhookConverter::Config WebhookConverter::ConfigOf(const apiextensions::Definition& definition) {
  MutexLock lock(mutex_);
  if (auto found = configs_.find(definition.uid);
      found != configs_.end() && found->second.revision == definition.revision) {
    return found->second;
  }
  const auto stored = definition.Load();
  const auto& webhook = stored->spec().conversion().webhook();
  Config config;
  config.revision = definition.revision;
  config.endpoint = webhook::EndpointOf(webhook.client_config());
  for (const std::string& version : webhook.conversion_review_versions()) {
    if (version != "v1" && version != "v1beta1") continue;
    config.review_version = version;
    break;
  }
  if (configs_.size() >= kMaxConfigs) configs_.clear();
  return configs_[definition.uid] = std::move(config);
}

Result<std::vector<std::unique_ptr<api::Message>>> WebhookConverter::Convert(
    const apiextensions::Definition& definition, const apiextensions::CustomRow& to,
    const std::vector<Versioned>& objects, SteadyTime deadline) {
  const Config config = ConfigOf(definition);
  if (config.review_version.empty()) {
    return Error(Code::kInternal, "no supported conversion review versions");
  }
  std::vector<std::unique_ptr<api::Message>> out;
  std::vector<std::string> texts;
  size_t bytes = 0;
  auto flush = [&]() -> Result<> {
    if (texts.empty()) return {};
    const Versioned* first = &objects[out.size()];
    const SteadyTime begin = SteadyTime::clock::now();
    Result<> called = Call(config, to, first, texts, std::min(deadline, begin + kCallTimeout), out);
    const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
    call_seconds
        .HistogramWith({definition.name(), std::string(first->row->version), called ? "true" : "false",
                        std::string(to.version)})
        .Observe(took.count());
    texts.clear();
    bytes = 0;
    return called;
  };
  for (const Versioned& object : objects) {
    texts.push_back(api::EncodeJson(*object.object, object.row->main->Gvk()));
    bytes += texts.back().size();
    if (bytes >= kCallBytes || texts.size() >= kCallObjects) KEELSON_RETURN_IF_ERROR(flush());
  }
  KEELSON_RETURN_IF_ERROR(flush());
  return out;
}

Result<> WebhookConverter::Call(const Config& config, const apiextensions::CustomRow& to,
                                const Versioned* objects, const std::vector<std::string>& texts,
                                SteadyTime deadline, std::vector<std::unique_ptr<api::Message>>& out) {
  ConversionRequest request = MakeConversionRequest(config.review_version, to.ApiVersion(), texts);
  Result<std::string> response = client_.Start(config.endpoint, std::move(request.json), deadline).Await();
  if (!response) return Wrong(objects[0], "failed: ", response.error().message());
  Result<std::vector<std::string>> converted = ReadConversionResponse(*response, request);
  if (!converted) return Wrong(objects[0], "failed: ", converted.error().message());
  if (converted->size() != texts.size()) {
    return Wrong(objects[0], "returned ",
                 fmt::format("{} objects, expected {}", converted->size(), texts.size()));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    Result<std::unique_ptr<api::Message>> taken = TakeConverted((*converted)[i], objects[i], to);
    if (!taken) return Wrong(objects[i], "returned ", taken.error().message());
    out.push_back(std::move(*taken));
  }
  return {};
}

}  // namespace keelson::apiserver
