#include "controlplane/controllers/podautoscaler/metrics_client.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/controllers/common/json_api.h"
#include "controlplane/controllers/common/kind_resources.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/quantity.h"
#include "lib/base/mutex.h"
#include "lib/base/percent.h"

namespace keelson::controllers::podautoscaler {
namespace {

namespace json = boost::json;
using api::metrics::v1beta1::PodMetrics;

constexpr char kCustom[] = "custom.metrics.k8s.io", kExternal[] = "external.metrics.k8s.io";

// The value of a string field; empty when there is none.
std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

int64_t MilliOf(const json::object& item) {
  Quantity quantity;
  quantity.set_string(TextOf(item, "value"));
  return api::Amount::Of(quantity).MilliValue();
}

// The items of a MetricValueList or an ExternalMetricValueList.
Result<std::vector<json::object>> ItemsOf(const std::string& text, std::string_view api) {
  boost::system::error_code problem;
  json::value value = json::parse(text, problem);
  std::vector<json::object> out;
  if (!problem && value.is_object()) {
    if (const json::value* items = value.get_object().if_contains("items"); items && items->is_array()) {
      for (const json::value& item : items->get_array()) {
        if (item.is_object()) out.push_back(item.get_object());
      }
    }
  }
  if (out.empty()) return Error(Code::kNotFound, fmt::format("no metrics returned from {} metrics API", api));
  return out;
}

std::string QueryOf(std::initializer_list<std::pair<const char*, std::string_view>> parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, PercentEncode(value));
  }
  return out;
}

class RestMetricsClient : public MetricsClient {
 public:
  explicit RestMetricsClient(client::RestClient api) : api_(std::move(api)) {}

  Result<PodValues> OfResource(const std::string& resource, const std::string& ns,
                               const std::string& selector, const std::string& container) override {
    Result<std::vector<PodMetrics>> pods = api_.List<PodMetrics>(ns, {.label_selector = selector});
    if (!pods) {
      const Error error = IsNoSuchPath(pods.error()) ? NoSuchPath("pods.metrics.k8s.io") : pods.error();
      return error.Wrap("unable to fetch metrics from resource metrics API");
    }
    if (pods->empty()) return Error(Code::kNotFound, "no metrics returned from resource metrics API");
    PodValues out;
    for (const PodMetrics& pod : *pods) {
      PodValue value{api::FromTime(pod.timestamp()), std::chrono::nanoseconds(pod.window().duration()), 0};
      api::Amount sum;
      bool known = pod.containers_size() > 0, found = false;
      for (const auto& one : pod.containers()) {
        if (!container.empty() && one.name() != container) continue;
        found = true;
        auto used = one.usage().find(resource);
        if (used == one.usage().end()) {
          known = false;
        } else {
          sum += api::Amount::Of(used->second);
        }
      }
      if (!container.empty() && !found) {
        return Error(
            Code::kNotFound,
            fmt::format("failed to get container metrics: container {} not present in metrics for pod {}/{}",
                        container, pod.metadata().namespace_(), pod.metadata().name()));
      }
      value.milli = sum.MilliValue();
      if (known) out[pod.metadata().name()] = value;
    }
    return out;
  }

  Result<PodValues> OfPods(const std::string& metric, const std::string& ns, const std::string& selector,
                           const std::string& metric_selector) override {
    Result<std::vector<json::object>> items =
        Custom("/namespaces/" + PercentEncode(ns) + "/pods/*/" + PercentEncode(metric) +
               QueryOf({{"labelSelector", selector}, {"metricLabelSelector", metric_selector}}));
    if (!items) return items.error();
    PodValues out;
    for (const json::object& item : *items) {
      const json::value* about = item.if_contains("describedObject");
      if (!about || !about->is_object()) continue;
      out[TextOf(about->get_object(), "name")].milli = MilliOf(item);
    }
    return out;
  }

  Result<int64_t> OfObject(const std::string& metric, const std::string& ns,
                           const api::autoscaling::v2::CrossVersionObjectReference& object,
                           const std::string& metric_selector) override {
    const std::string query = QueryOf({{"metricLabelSelector", metric_selector}});
    const std::string where = "/namespaces/" + PercentEncode(ns);
    std::string path;
    if (object.kind() == "Namespace" && api::SplitApiVersion(object.api_version()).first.empty()) {
      path = where + "/metrics/" + PercentEncode(metric);  // its own, whatever name was given
    } else {
      auto resources = ResourcesOf(api_, object.api_version(), object.kind());
      if (!resources) return resources.error().Wrap("unable to fetch metrics from custom metrics API");
      path = where + "/" + PercentEncode(resources->front().GroupResource()) + "/" +
             PercentEncode(object.name()) + "/" + PercentEncode(metric);
    }
    KEELSON_ASSIGN_OR_RETURN(const std::vector<json::object> items, Custom(path + query));
    return MilliOf(items.front());
  }

  Result<std::vector<int64_t>> OfExternal(const std::string& metric, const std::string& ns,
                                          const std::string& metric_selector) override {
    Result<std::string> text =
        Fetch(api_, fmt::format("/apis/{}/v1beta1/namespaces/{}/{}{}", kExternal, PercentEncode(ns),
                                PercentEncode(metric), QueryOf({{"labelSelector", metric_selector}})));
    if (!text) {
      const Error error = IsNoSuchPath(text.error()) ? NoSuchPath(metric + "." + kExternal) : text.error();
      return error.Wrap("unable to fetch metrics from external metrics API");
    }
    KEELSON_ASSIGN_OR_RETURN(const std::vector<json::object> items, ItemsOf(*text, "external"));
    std::vector<int64_t> out;
    for (const json::object& item : items) out.push_back(MilliOf(item));
    return out;
  }

 private:
  // The server's preferred version of custom metrics among the known ones. Discovered again after a failure.
  Result<std::string> CustomVersion() {
    MutexLock lock(mutex_);
    if (!custom_version_.empty()) return custom_version_;
    Result<std::string> text = Fetch(api_, std::string("/apis/") + kCustom);
    if (!text && !IsNoSuchPath(text.error())) return text.error();
    metav1::APIGroup group;
    if (text) KEELSON_RETURN_IF_ERROR(api::DecodeJson(*text, group));
    for (const char* version : {"v1beta2", "v1beta1"}) {
      for (const auto& served : group.versions()) {
        if (served.version() == version) return custom_version_ = version;
      }
    }
    return Error(Code::kNotFound, fmt::format("no custom metrics API ({}) registered", kCustom));
  }

  Result<std::vector<json::object>> Custom(const std::string& path) {
    Result<std::string> version = CustomVersion();
    Result<std::string> text = version ? Fetch(api_, fmt::format("/apis/{}/{}{}", kCustom, *version, path))
                                       : Result<std::string>(version.error());
    if (text) return ItemsOf(*text, "custom");
    {
      MutexLock lock(mutex_);
      custom_version_.clear();
    }
    return text.error().Wrap("unable to fetch metrics from custom metrics API");
  }

  client::RestClient api_;
  Mutex mutex_;
  std::string custom_version_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<MetricsClient> NewMetricsClient(client::RestClient api) {
  return std::make_unique<RestMetricsClient>(std::move(api));
}

}  // namespace keelson::controllers::podautoscaler
