#include "controlplane/apiserver/admission/admission.h"

#include <atomic>

#include "lib/api/meta.h"
#include "lib/base/clock.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

metrics::Family& plugin_seconds = metrics::Histograms(
    "apiserver_admission_controller_admission_duration_seconds",
    "Admission controller latency histogram in seconds, identified by name and broken out for each "
    "operation and API resource and type (validate or admit).",
    {0.005, 0.025, 0.1, 0.5, 1.0, 2.5}, {"name", "operation", "rejected", "type"});
metrics::Family& step_seconds = metrics::Histograms(
    "apiserver_admission_step_admission_duration_seconds",
    "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and "
    "step type (validate or admit).",
    {0.005, 0.025, 0.1, 0.5, 1.0, 2.5}, {"operation", "rejected", "type"});

}  // namespace

// A plugin with its histograms, or (null) the histograms of the whole chain.
struct AdmissionChain::Timed {
  explicit Timed(std::unique_ptr<AdmissionPlugin> p) : plugin(std::move(p)) {}

  void Observe(registry::Operation operation, bool rejected, bool mutate, SteadyTime::duration took) {
    const size_t op = static_cast<size_t>(operation);
    std::atomic<metrics::Histogram*>& cell = cells[op][rejected][mutate];
    metrics::Histogram* histogram = cell.load(std::memory_order_acquire);
    if (!histogram) {
      std::vector<std::string> labels = {std::string(NameOf(operation)), rejected ? "true" : "false",
                                         mutate ? "admit" : "validate"};
      if (plugin) labels.insert(labels.begin(), std::string(plugin->name()));
      histogram = &(plugin ? plugin_seconds : step_seconds).HistogramWith(labels);
      cell.store(histogram, std::memory_order_release);
    }
    histogram->Observe(std::chrono::duration<double>(took).count());
  }

  const std::unique_ptr<AdmissionPlugin> plugin;
  std::atomic<metrics::Histogram*> cells[4][2][2] = {};
};

std::string_view AdmissionRequest::Subresource() const {
  const size_t slash = info.resource.find('/');
  return slash == std::string_view::npos ? std::string_view() : info.resource.substr(slash + 1);
}

std::string AdmissionRequest::Name() const {
  if (!name.empty()) return std::string(name);
  if (!object || !api::HasObjectMeta(object->GetDescriptor())) return "Unknown";
  const metav1::ObjectMeta& meta = api::Meta(*object);
  if (!meta.name().empty()) return meta.name();
  return meta.generate_name().empty() ? "Unknown" : meta.generate_name();
}

AdmissionChain::AdmissionChain(std::vector<std::unique_ptr<AdmissionPlugin>> plugins)
    : whole_(std::make_unique<Timed>(nullptr)) {
  for (auto& plugin : plugins) plugins_.push_back(std::make_unique<Timed>(std::move(plugin)));
}
AdmissionChain::~AdmissionChain() = default;

Result<> AdmissionChain::Mutate(const AdmissionRequest& request) const {
  Reinvocation reinvocation;
  AdmissionRequest shared = request;
  shared.reinvocation = &reinvocation;
  KEELSON_RETURN_IF_ERROR(Run(shared, true));
  if (!reinvocation.asked_) return {};
  reinvocation.again_ = true;
  return Run(shared, true);
}

Result<> AdmissionChain::Validate(const AdmissionRequest& request) const { return Run(request, false); }

Result<> AdmissionChain::Run(const AdmissionRequest& request, bool mutate) const {
  const SteadyTime begin = SteadyTime::clock::now();
  SteadyTime last = begin;
  Result<> result;
  for (const auto& timed : plugins_) {
    if (request.Connects() && !timed->plugin->HandlesConnect()) continue;
    result = mutate ? timed->plugin->Mutate(request) : timed->plugin->Validate(request);
    const SteadyTime now = SteadyTime::clock::now();
    timed->Observe(request.operation, !result, mutate, now - last);
    last = now;
    if (!result) break;
  }
  whole_->Observe(request.operation, !result, mutate, last - begin);
  return result;
}

std::vector<std::string_view> AdmissionChain::Names() const {
  std::vector<std::string_view> names;
  for (const auto& timed : plugins_) names.push_back(timed->plugin->name());
  return names;
}

std::string_view NameOf(registry::Operation operation) {
  static constexpr std::string_view kNames[] = {"CREATE", "UPDATE", "DELETE", "CONNECT"};
  return kNames[static_cast<size_t>(operation)];
}

Error NotAdmitted(const AdmissionRequest& request, std::string_view why) {
  // The resource is named without its subresource.
  const api::ResourceInfo* main =
      api::FindResource(request.info.group, request.info.version, request.MainResource());
  return registry::ForbiddenError(main ? *main : request.info, request.Name(), why);
}

}  // namespace keelson::apiserver
