// Tables of pods and their controllers.
#include <fmt/format.h>

#include "lib/api/meta.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/quantity.h"
#include "lib/api/table/cells.h"
#include "lib/api/table/table.h"
#include "lib/base/text.h"

namespace keelson::api {
namespace {

using corev1::ContainerStatus;
using corev1::Pod;

// The values for the STATUS, READY and RESTARTS columns of a pod.
struct PodSummary {
  std::string reason;
  int64_t ready = 0, total = 0, restarts = 0;
  metav1::Time last_restart;

  void Restarted(const ContainerStatus& status) {
    restarts += status.restart_count();
    if (!status.last_state().has_terminated()) return;
    const metav1::Time& finished = status.last_state().terminated().finished_at();
    if (finished.has_seconds() &&
        (!last_restart.has_seconds() || finished.seconds() > last_restart.seconds())) {
      last_restart = finished;
    }
  }
};

bool HasCondition(const Pod& pod, std::string_view type, std::string_view status) {
  for (const auto& condition : pod.status().conditions()) {
    if (condition.type() == type) return condition.status() == status;
  }
  return false;
}

bool IsSidecar(const Pod& pod, const std::string& name) {
  for (const auto& container : pod.spec().init_containers()) {
    if (container.name() == name) return container.restart_policy() == "Always";
  }
  return false;
}

std::string HowItEnded(const corev1::ContainerStateTerminated& state) {
  if (!state.reason().empty()) return state.reason();
  return state.signal() != 0 ? fmt::format("Signal:{}", state.signal())
                             : fmt::format("ExitCode:{}", state.exit_code());
}

// Visits init containers up to the one that runs; false when all are done.
bool SummarizeInit(const Pod& pod, PodSummary& summary, PodSummary& sidecars) {
  const auto& statuses = pod.status().init_container_statuses();
  for (int i = 0; i < statuses.size(); ++i) {
    const ContainerStatus& status = statuses[i];
    bool sidecar = IsSidecar(pod, status.name());
    summary.Restarted(status);
    if (sidecar) sidecars.Restarted(status);
    if (status.state().has_terminated() && status.state().terminated().exit_code() == 0) continue;
    if (sidecar && status.started()) {
      if (status.ready()) ++summary.ready;
      continue;
    }
    const auto& waiting = status.state().waiting();
    if (status.state().has_terminated()) {
      summary.reason = "Init:" + HowItEnded(status.state().terminated());
    } else if (!waiting.reason().empty() && waiting.reason() != "PodInitializing") {
      summary.reason = "Init:" + waiting.reason();
    } else {
      summary.reason = fmt::format("Init:{}/{}", i, pod.spec().init_containers_size());
    }
    return true;
  }
  return false;
}

void SummarizeContainers(const Pod& pod, PodSummary& summary) {
  bool running = false;
  const auto& statuses = pod.status().container_statuses();
  for (int i = statuses.size() - 1; i >= 0; --i) {  // the first container's reason is shown
    const ContainerStatus& status = statuses[i];
    summary.Restarted(status);
    if (!status.state().waiting().reason().empty()) {
      summary.reason = status.state().waiting().reason();
    } else if (status.state().has_terminated()) {
      summary.reason = HowItEnded(status.state().terminated());
    } else if (status.ready() && status.state().has_running()) {
      running = true;
      ++summary.ready;
    }
  }
  if (summary.reason == "Completed" && running) {
    summary.reason = HasCondition(pod, "Ready", "True") ? "Running" : "NotReady";
  }
}

PodSummary Summarize(const Pod& pod) {
  PodSummary summary, sidecars;
  summary.total = pod.spec().containers_size();
  for (const auto& container : pod.spec().init_containers()) {
    summary.total += container.restart_policy() == "Always";
  }
  summary.reason = pod.status().reason().empty() ? pod.status().phase() : pod.status().reason();
  for (const auto& condition : pod.status().conditions()) {
    if (condition.type() == "PodScheduled" && condition.reason() == "SchedulingGated") {
      summary.reason = "SchedulingGated";
    }
  }
  bool initializing = SummarizeInit(pod, summary, sidecars);
  if (!initializing || HasCondition(pod, "Initialized", "True")) {
    summary.restarts = sidecars.restarts;
    summary.last_restart = sidecars.last_restart;
    SummarizeContainers(pod, summary);
  }
  if (pod.metadata().has_deletion_timestamp()) {
    const std::string& phase = pod.status().phase();
    if (pod.status().reason() == "NodeLost") {
      summary.reason = "Unknown";
    } else if (phase != "Succeeded" && phase != "Failed") {
      summary.reason = "Terminating";
    }
  }
  return summary;
}

void FillPod(const Pod& pod, Cells& cells) {
  PodSummary summary = Summarize(pod);
  cells.Text(pod.metadata().name())
      .Text(fmt::format("{}/{}", summary.ready, summary.total))
      .Text(summary.reason);
  if (summary.restarts != 0 && summary.last_restart.has_seconds()) {
    cells.NumberAndAge(summary.restarts, summary.last_restart);
  } else {
    cells.Text(std::to_string(summary.restarts));
  }
  cells.Age(pod.metadata());
  cells.TextOr(pod.status().pod_ips_size() > 0 ? pod.status().pod_ips(0).ip() : pod.status().pod_ip(),
               "<none>");
  cells.TextOr(pod.spec().node_name(), "<none>").TextOr(pod.status().nominated_node_name(), "<none>");
  int passed = 0, gates = pod.spec().readiness_gates_size();
  for (const auto& gate : pod.spec().readiness_gates()) {
    passed += HasCondition(pod, gate.condition_type(), "True");
  }
  cells.Text(gates == 0 ? "<none>" : fmt::format("{}/{}", passed, gates));
}

void Containers(const corev1::PodSpec& spec, Cells& cells) {
  std::vector<std::string> names, images;
  for (const auto& container : spec.containers()) {
    names.push_back(container.name());
    images.push_back(container.image());
  }
  cells.Text(Join(names, ",")).Text(Join(images, ","));
}

void FillPodTemplate(const corev1::PodTemplate& object, Cells& cells) {
  cells.Text(object.metadata().name());
  Containers(object.template_().spec(), cells);
  cells.Text(FormatLabels(object.template_().metadata().labels()));
}

void FillDeployment(const appsv1::Deployment& object, Cells& cells) {
  const auto& status = object.status();
  cells.Text(object.metadata().name())
      .Text(fmt::format("{}/{}", status.ready_replicas(), object.spec().replicas()));
  cells.Number(status.updated_replicas()).Number(status.available_replicas()).Age(object.metadata());
  Containers(object.spec().template_().spec(), cells);
  cells.Text(FormatSelector(object.spec().selector()));
}

void FillReplicaSet(const appsv1::ReplicaSet& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(object.spec().replicas()).Number(object.status().replicas());
  cells.Number(object.status().ready_replicas()).Age(object.metadata());
  Containers(object.spec().template_().spec(), cells);
  cells.Text(FormatSelector(object.spec().selector()));
}

void FillReplicationController(const corev1::ReplicationController& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(object.spec().replicas()).Number(object.status().replicas());
  cells.Number(object.status().ready_replicas()).Age(object.metadata());
  Containers(object.spec().template_().spec(), cells);
  cells.Text(FormatLabels(object.spec().selector()));
}

void FillDaemonSet(const appsv1::DaemonSet& object, Cells& cells) {
  const auto& status = object.status();
  cells.Text(object.metadata().name())
      .Number(status.desired_number_scheduled())
      .Number(status.current_number_scheduled());
  cells.Number(status.number_ready())
      .Number(status.updated_number_scheduled())
      .Number(status.number_available());
  cells.Text(FormatLabels(object.spec().template_().spec().node_selector())).Age(object.metadata());
  Containers(object.spec().template_().spec(), cells);
  cells.Text(FormatSelector(object.spec().selector()));
}

void FillStatefulSet(const appsv1::StatefulSet& object, Cells& cells) {
  cells.Text(object.metadata().name());
  cells.Text(fmt::format("{}/{}", object.status().ready_replicas(), object.spec().replicas()))
      .Age(object.metadata());
  Containers(object.spec().template_().spec(), cells);
}

void FillControllerRevision(const appsv1::ControllerRevision& object, Cells& cells) {
  std::string controller = "<none>";
  if (const metav1::OwnerReference* owner = ControllerOf(object.metadata())) {
    controller = owner->kind();
    if (std::string group = SplitApiVersion(owner->api_version()).first; !group.empty()) {
      controller += "." + group;
    }
    controller = Lower(controller);
    controller += "/" + owner->name();
  }
  cells.Text(object.metadata().name()).Text(controller).Number(object.revision()).Age(object.metadata());
}

std::string JobStatus(const batch::v1::Job& job) {
  auto has = [&](std::string_view type) {
    for (const auto& condition : job.status().conditions()) {
      if (condition.type() == type && condition.status() == "True") return true;
    }
    return false;
  };
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (job.metadata().has_deletion_timestamp()) return "Terminating";
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (has(type)) return type;
  }
  return "Running";
}

void FillJob(const batch::v1::Job& job, Cells& cells) {
  const auto& status = job.status();
  cells.Text(job.metadata().name()).Text(JobStatus(job));
  if (job.spec().has_completions()) {
    cells.Text(fmt::format("{}/{}", status.succeeded(), job.spec().completions()));
  } else if (job.spec().parallelism() > 1) {
    cells.Text(fmt::format("{}/1 of {}", status.succeeded(), job.spec().parallelism()));
  } else {
    cells.Text(fmt::format("{}/1", status.succeeded()));
  }
  if (status.has_start_time() && status.has_completion_time()) {
    cells.Text(HumanDuration(
        std::chrono::seconds(status.completion_time().seconds() - status.start_time().seconds())));
  } else {
    cells.Age(status.start_time(), "");
  }
  cells.Age(job.metadata());
  Containers(job.spec().template_().spec(), cells);
  cells.Text(FormatSelector(job.spec().selector()));
}

void FillCronJob(const batch::v1::CronJob& object, Cells& cells) {
  const auto& spec = object.spec();
  cells.Text(object.metadata().name()).Text(spec.schedule()).TextOr(spec.time_zone(), "<none>");
  cells.Text(!spec.has_suspend() ? "<unset>"
             : spec.suspend()    ? "True"
                                 : "False")
      .Number(object.status().active_size());
  cells.Age(object.status().last_schedule_time(), "<none>").Age(object.metadata());
  Containers(spec.job_template().spec().template_().spec(), cells);
  cells.Text(FormatSelector(spec.job_template().spec().selector()));
}

std::string Target(std::string_view current, std::string_view wanted) {
  return fmt::format("{}/{}", current, wanted);
}

std::string MetricText(const autoscaling::v2::MetricTarget& target,
                       const autoscaling::v2::MetricValueStatus* now) {
  if (target.has_average_utilization()) {
    bool known = now && now->has_average_utilization();
    return Target(known ? fmt::format("{}%", now->average_utilization()) : "<unknown>",
                  fmt::format("{}%", target.average_utilization()));
  }
  bool average = target.has_average_value();
  bool known = now && (average ? now->has_average_value() : now->has_value());
  std::string current = known ? (average ? now->average_value() : now->value()).string() : "<unknown>";
  return Target(current, (average ? target.average_value() : target.value()).string()) +
         (average ? " (avg)" : "");
}

void FillScale(const autoscalingv1::Scale& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(object.spec().replicas()).Number(object.status().replicas());
  cells.Age(object.metadata());
}

void FillAutoscalerV2(const autoscaling::v2::HorizontalPodAutoscaler& object, Cells& cells) {
  const auto& spec = object.spec();
  const auto& status = object.status();
  std::vector<std::string> metrics;
  for (int i = 0; i < spec.metrics_size(); ++i) {
    const auto& metric = spec.metrics(i);
    const auto* now = i < status.current_metrics_size() ? &status.current_metrics(i) : nullptr;
    if (metric.type() == "Resource") {
      metrics.push_back(metric.resource().name() + ": " +
                        MetricText(metric.resource().target(), now ? &now->resource().current() : nullptr));
    } else if (metric.type() == "ContainerResource") {
      metrics.push_back(metric.container_resource().name() + ": " +
                        MetricText(metric.container_resource().target(),
                                   now ? &now->container_resource().current() : nullptr));
    } else if (metric.type() == "Pods") {
      metrics.push_back(MetricText(metric.pods().target(), now ? &now->pods().current() : nullptr));
    } else if (metric.type() == "Object") {
      metrics.push_back(MetricText(metric.object().target(), now ? &now->object().current() : nullptr));
    } else if (metric.type() == "External") {
      metrics.push_back(MetricText(metric.external().target(), now ? &now->external().current() : nullptr));
    } else {
      metrics.push_back("<unknown type>");
    }
  }
  std::string text =
      metrics.empty()
          ? "<none>"
          : Join({metrics.begin(), metrics.begin() + std::min<std::ptrdiff_t>(2, std::ssize(metrics))}, ", ");
  if (metrics.size() > 2) text += fmt::format(" + {} more...", metrics.size() - 2);
  cells.Text(object.metadata().name())
      .Text(spec.scale_target_ref().kind() + "/" + spec.scale_target_ref().name())
      .Text(text);
  cells.Text(spec.has_min_replicas() ? std::to_string(spec.min_replicas()) : "<unset>")
      .Number(spec.max_replicas());
  cells.Number(status.current_replicas()).Age(object.metadata());
}

void FillAutoscalerV1(const autoscalingv1::HorizontalPodAutoscaler& object, Cells& cells) {
  const auto& spec = object.spec();
  std::string target = "<none>";
  if (spec.has_target_cpu_utilization_percentage()) {
    bool known = object.status().has_current_cpu_utilization_percentage();
    target = "cpu: " + Target(known ? fmt::format("{}%", object.status().current_cpu_utilization_percentage())
                                    : "<unknown>",
                              fmt::format("{}%", spec.target_cpu_utilization_percentage()));
  }
  cells.Text(object.metadata().name())
      .Text(spec.scale_target_ref().kind() + "/" + spec.scale_target_ref().name())
      .Text(target);
  cells.Text(spec.has_min_replicas() ? std::to_string(spec.min_replicas()) : "<unset>")
      .Number(spec.max_replicas());
  cells.Number(object.status().current_replicas()).Age(object.metadata());
}

}  // namespace

std::vector<TableKind> WorkloadTables() {
  constexpr std::string_view kAutoscaler = "Name|Reference|Targets|MinPods|MaxPods|Replicas|Age";
  return {
      TableOf<Pod>("Name|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+", FillPod),
      TableOf<corev1::PodTemplate>("Name|Containers|Images|Pod Labels", FillPodTemplate),
      TableOf<appsv1::Deployment>("Name|Ready|Up-to-date|Available|Age|Containers+|Images+|Selector+",
                                  FillDeployment),
      TableOf<appsv1::ReplicaSet>("Name|Desired#|Current#|Ready#|Age|Containers+|Images+|Selector+",
                                  FillReplicaSet),
      TableOf<corev1::ReplicationController>(
          "Name|Desired#|Current#|Ready#|Age|Containers+|Images+|Selector+", FillReplicationController),
      TableOf<appsv1::DaemonSet>(
          "Name|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|Containers+|"
          "Images+|Selector+",
          FillDaemonSet),
      TableOf<appsv1::StatefulSet>("Name|Ready|Age|Containers+|Images+", FillStatefulSet),
      TableOf<appsv1::ControllerRevision>("Name|Controller|Revision|Age", FillControllerRevision),
      TableOf<batch::v1::Job>("Name|Status|Completions|Duration|Age|Containers+|Images+|Selector+", FillJob),
      TableOf<batch::v1::CronJob>(
          "Name|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|Containers+|Images+|Selector+",
          FillCronJob),
      TableOf<autoscalingv1::Scale>("Name~|Desired#|Available#|Age", FillScale),
      TableOf<autoscaling::v2::HorizontalPodAutoscaler>(kAutoscaler, FillAutoscalerV2),
      TableOf<autoscalingv1::HorizontalPodAutoscaler>(kAutoscaler, FillAutoscalerV1),
  };
}

}  // namespace keelson::api
