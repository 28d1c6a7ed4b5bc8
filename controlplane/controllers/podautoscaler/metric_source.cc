#include "controlplane/controllers/podautoscaler/metric_source.h"

#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/quantity.h"
#include "lib/api/selector.h"

namespace keelson::controllers::podautoscaler {
namespace {

using autoscalingv2::MetricIdentifier;
using autoscalingv2::MetricSpec;
using autoscalingv2::MetricTarget;
using autoscalingv2::MetricValueStatus;
using Outcome = std::variant<Evaluation, EvaluationFailure>;

int64_t Milli(const Quantity& quantity) { return api::Amount::Of(quantity).MilliValue(); }
Quantity FromMilli(int64_t milli) { return api::Amount::FromMilli(milli).ToQuantity(); }

// The metric's selector; none: all values.
Result<std::string> SelectorOf(const MetricIdentifier& metric) {
  if (!metric.has_selector()) return std::string();
  KEELSON_ASSIGN_OR_RETURN(const api::LabelSelector selector, api::LabelSelector::From(metric.selector()));
  return selector.ToString();
}

const metav1::LabelSelector* RawSelectorOf(const MetricIdentifier& metric) {
  return metric.has_selector() ? &metric.selector() : nullptr;
}

EvaluationFailure Failure(std::string reason, const Error& why, const std::string& context) {
  return {std::move(reason), why.message(), context + ": " + why.message(), why.code()};
}

// Resource and ContainerResource metrics; `container` empty: the former.
Result<Proposal> OfResource(const MetricTarget& target, const std::string& resource,
                            const std::string& container, const Subject& subject, MetricsClient& metrics) {
  const bool average = target.has_average_value();
  if (!average && !target.has_average_utilization()) {
    return Error(Code::kInvalid,
                 "invalid resource metric source: neither an average utilization target nor an average value "
                 "(usage) target was set");
  }
  const std::string context = fmt::format("failed to get {} {}", resource, average ? "usage" : "utilization");
  Result<PodValues> values = metrics.OfResource(resource, subject.ns, subject.selector, container);
  if (!values) return values.error().Wrap("unable to get metrics for resource " + resource).Wrap(context);
  Result<Proposal> out =
      average ? ByAverage(subject.look, std::move(*values), resource, Milli(target.average_value()))
              : ByUtilization(subject.look, std::move(*values), resource, container,
                              target.average_utilization());
  if (!out) return out.error().Wrap(context);
  return out;
}

void SetCurrent(const MetricTarget& target, const Proposal& proposal, MetricValueStatus& out) {
  if (!target.has_average_value()) out.set_average_utilization(proposal.percent);
  *out.mutable_average_value() = FromMilli(proposal.milli);
}

Outcome EvaluateResource(const MetricSpec& spec, const Subject& subject, MetricsClient& metrics) {
  const bool of_container = spec.type() == "ContainerResource";
  const std::string& resource = of_container ? spec.container_resource().name() : spec.resource().name();
  const MetricTarget& target = of_container ? spec.container_resource().target() : spec.resource().target();
  const std::string container = of_container ? spec.container_resource().container() : "";
  Result<Proposal> proposal = OfResource(target, resource, container, subject, metrics);
  if (!proposal) {
    return Failure(
        of_container ? "FailedGetContainerResourceMetric" : "FailedGetResourceMetric", proposal.error(),
        fmt::format("failed to get {} {} metric value", resource, of_container ? "container" : "resource"));
  }
  Evaluation out{proposal->replicas, "", {}};
  out.status.set_type(spec.type());
  if (of_container) {
    auto& status = *out.status.mutable_container_resource();
    status.set_name(resource);
    status.set_container(container);
    SetCurrent(target, *proposal, *status.mutable_current());
  } else {
    auto& status = *out.status.mutable_resource();
    status.set_name(resource);
    SetCurrent(target, *proposal, *status.mutable_current());
  }
  if (target.has_average_value()) {
    out.name = resource + " resource";
  } else {
    out.name = fmt::format("{}{} resource utilization (percentage of request)", resource,
                           of_container ? " container" : "");
  }
  return out;
}

Outcome EvaluatePods(const MetricSpec& spec, const Subject& subject, MetricsClient& metrics) {
  const MetricIdentifier& metric = spec.pods().metric();
  auto evaluate = [&]() -> Result<Proposal> {
    KEELSON_ASSIGN_OR_RETURN(const std::string selector, SelectorOf(metric));
    Result<PodValues> values = metrics.OfPods(metric.name(), subject.ns, subject.selector, selector);
    if (!values) return values.error().Wrap("unable to get metric " + metric.name());
    return ByAverage(subject.look, std::move(*values), "", Milli(spec.pods().target().average_value()));
  };
  Result<Proposal> proposal = evaluate();
  if (!proposal) return Failure("FailedGetPodsMetric", proposal.error(), "failed to get pods metric value");
  Evaluation out{proposal->replicas, "pods metric " + metric.name(), {}};
  out.status.set_type(spec.type());
  *out.status.mutable_pods()->mutable_metric() = metric;
  *out.status.mutable_pods()->mutable_current()->mutable_average_value() = FromMilli(proposal->milli);
  return out;
}

// A single value, shared by all pods or divided by their number.
Result<Proposal> OfValue(const MetricTarget& target, int64_t value, const Subject& subject) {
  if (target.has_average_value()) {
    return ByValuePerPod(subject.look, subject.status_replicas, value, Milli(target.average_value()));
  }
  return ByValue(subject.look, value, Milli(target.value()));
}

void SetValue(const MetricTarget& target, const Proposal& proposal, MetricValueStatus& out) {
  *(target.has_average_value() ? out.mutable_average_value() : out.mutable_value()) =
      FromMilli(proposal.milli);
}

std::string ExternalName(const MetricIdentifier& metric) {
  return fmt::format("external metric {}({})", metric.name(), GoText(RawSelectorOf(metric)));
}

Outcome EvaluateObject(const MetricSpec& spec, const Subject& subject, MetricsClient& metrics) {
  const MetricIdentifier& metric = spec.object().metric();
  const MetricTarget& target = spec.object().target();
  const auto& object = spec.object().described_object();
  auto evaluate = [&]() -> Result<Proposal> {
    if (!target.has_value() && !target.has_average_value()) {
      return Error(
          Code::kInvalid,
          "invalid object metric source: neither a value target nor an average value target was set");
    }
    KEELSON_ASSIGN_OR_RETURN(const std::string selector, SelectorOf(metric));
    Result<int64_t> value = metrics.OfObject(metric.name(), subject.ns, object, selector);
    // Upstream's error messages have this order.
    if (!value) {
      return Error(value.error().code(),
                   fmt::format("unable to get metric {}: {} on {} {}/{}", metric.name(), object.kind(),
                               subject.ns, object.name(), value.error().message()));
    }
    return OfValue(target, *value, subject);
  };
  Result<Proposal> proposal = evaluate();
  if (!proposal) {
    return Failure("FailedGetObjectMetric", proposal.error(), "failed to get object metric value");
  }
  Evaluation out{proposal->replicas,
                 target.has_average_value() ? ExternalName(metric)
                                            : fmt::format("{} metric {}", object.kind(), metric.name()),
                 {}};
  out.status.set_type(spec.type());
  auto& status = *out.status.mutable_object();
  *status.mutable_described_object() = object;
  *status.mutable_metric() = metric;
  SetValue(target, *proposal, *status.mutable_current());
  return out;
}

Outcome EvaluateExternal(const MetricSpec& spec, const Subject& subject, MetricsClient& metrics) {
  const MetricIdentifier& metric = spec.external().metric();
  const MetricTarget& target = spec.external().target();
  auto evaluate = [&]() -> Result<Proposal> {
    if (!target.has_value() && !target.has_average_value()) {
      return Error(
          Code::kInvalid,
          "invalid external metric source: neither a value target nor an average value target was set");
    }
    KEELSON_ASSIGN_OR_RETURN(const std::string selector, SelectorOf(metric));
    Result<std::vector<int64_t>> values = metrics.OfExternal(metric.name(), subject.ns, selector);
    if (!values) {
      return values.error().Wrap(fmt::format("unable to get external metric {}/{}/{}", subject.ns,
                                             metric.name(), GoText(RawSelectorOf(metric))));
    }
    return OfValue(target, std::accumulate(values->begin(), values->end(), int64_t{0}), subject);
  };
  Result<Proposal> proposal = evaluate();
  if (!proposal) {
    return Failure("FailedGetExternalMetric", proposal.error(),
                   fmt::format("failed to get {} external metric value", metric.name()));
  }
  Evaluation out{proposal->replicas, ExternalName(metric), {}};
  out.status.set_type(spec.type());
  auto& status = *out.status.mutable_external();
  *status.mutable_metric() = metric;
  SetValue(target, *proposal, *status.mutable_current());
  return out;
}

}  // namespace

std::string GoText(const metav1::LabelSelector* selector) {
  if (!selector) return "nil";
  const std::map<std::string, std::string> labels(selector->match_labels().begin(),
                                                  selector->match_labels().end());
  std::string out = "&LabelSelector{MatchLabels:map[string]string{";
  for (const auto& [key, value] : labels) out += fmt::format("{}: {},", key, value);
  out += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const auto& one : selector->match_expressions()) {
    out += fmt::format("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},", one.key(),
                       one.operator_(), fmt::join(one.values(), " "));
  }
  return out + "},}";
}

Outcome Evaluate(const MetricSpec& spec, const Subject& subject, MetricsClient& metrics) {
  const std::string& type = spec.type();
  if (type == "Resource" || type == "ContainerResource") return EvaluateResource(spec, subject, metrics);
  if (type == "Pods") return EvaluatePods(spec, subject, metrics);
  if (type == "Object") return EvaluateObject(spec, subject, metrics);
  if (type == "External") return EvaluateExternal(spec, subject, metrics);
  const std::string why = fmt::format("unknown metric source type \"{}\"", type);
  return EvaluationFailure{"InvalidMetricSourceType", why, why, Code::kInvalid};
}

}  // namespace keelson::controllers::podautoscaler
