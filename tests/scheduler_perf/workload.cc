#include "tests/scheduler_perf/workload.h"

namespace keelson::scheduler::perf {

namespace {

constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kHostname[] = "kubernetes.io/hostname";

corev1::Node Node(const std::string& name, const std::vector<std::string>& zones, int i,
                  const char* pods = "110", const char* cpu = "4", const char* memory = "32Gi") {
  corev1::Node node;
  node.mutable_metadata()->set_name(name);
  auto& labels = *node.mutable_metadata()->mutable_labels();
  labels[kHostname] = name;
  if (!zones.empty()) labels[kZone] = zones[static_cast<size_t>(i) % zones.size()];
  auto& allocatable = *node.mutable_status()->mutable_allocatable();
  allocatable["cpu"].set_string(cpu);
  allocatable["memory"].set_string(memory);
  allocatable["pods"].set_string(pods);
  *node.mutable_status()->mutable_capacity() = allocatable;
  return node;
}

std::function<corev1::Node(int)> Nodes(std::vector<std::string> zones = {}) {
  return [zones](int i) { return Node("node-" + std::to_string(i), zones, i); };
}

corev1::Pod Pod(const std::string& name, const std::string& ns, const char* cpu = "100m",
                const char* memory = "500Mi") {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_(ns);
  corev1::PodSpec& spec = *pod.mutable_spec();
  spec.set_scheduler_name("default-scheduler");
  spec.set_termination_grace_period_seconds(0);
  corev1::Container& container = *spec.add_containers();
  container.set_name("pause");
  container.set_image("registry.k8s.io/pause:3.10");
  container.add_ports()->set_container_port(80);
  auto& requests = *container.mutable_resources()->mutable_requests();
  requests["cpu"].set_string(cpu);
  requests["memory"].set_string(memory);
  return pod;
}

using Edit = std::function<void(corev1::Pod&)>;

std::function<corev1::Pod(int)> Pods(const std::string& prefix, const std::string& ns,
                                     const Edit& edit = nullptr, const char* cpu = "100m",
                                     const char* memory = "500Mi") {
  return [=](int i) {
    corev1::Pod pod = Pod(prefix + "-" + std::to_string(i), ns, cpu, memory);
    if (edit) edit(pod);
    return pod;
  };
}

Edit Label(const std::string& key, const std::string& value) {
  return [=](corev1::Pod& pod) { (*pod.mutable_metadata()->mutable_labels())[key] = value; };
}

Edit Priority(int priority) {
  return [=](corev1::Pod& pod) { pod.mutable_spec()->set_priority(priority); };
}

corev1::PodAffinityTerm Term(const std::string& color, const char* key) {
  corev1::PodAffinityTerm term;
  (*term.mutable_label_selector()->mutable_match_labels())["color"] = color;
  term.set_topology_key(key);
  term.add_namespaces("sched-1");
  term.add_namespaces("sched-0");
  return term;
}

void Affinity(corev1::Pod& pod) {
  Label("color", "blue")(pod);
  *pod.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("blue", kZone);
}

void AntiAffinity(corev1::Pod& pod) {
  Label("color", "green")(pod);
  *pod.mutable_spec()
       ->mutable_affinity()
       ->mutable_pod_anti_affinity()
       ->add_required_during_scheduling_ignored_during_execution() = Term("green", kHostname);
}

void PreferredAffinity(corev1::Pod& pod) {
  Label("color", "red")(pod);
  auto& term = *pod.mutable_spec()
                    ->mutable_affinity()
                    ->mutable_pod_affinity()
                    ->add_preferred_during_scheduling_ignored_during_execution();
  term.set_weight(1);
  *term.mutable_pod_affinity_term() = Term("red", kHostname);
}

void PreferredAntiAffinity(corev1::Pod& pod) {
  Label("color", "yellow")(pod);
  auto& term = *pod.mutable_spec()
                    ->mutable_affinity()
                    ->mutable_pod_anti_affinity()
                    ->add_preferred_during_scheduling_ignored_during_execution();
  term.set_weight(1);
  *term.mutable_pod_affinity_term() = Term("yellow", kHostname);
}

void NodeAffinity(corev1::Pod& pod) {
  auto& expression = *pod.mutable_spec()
                          ->mutable_affinity()
                          ->mutable_node_affinity()
                          ->mutable_required_during_scheduling_ignored_during_execution()
                          ->add_node_selector_terms()
                          ->add_match_expressions();
  expression.set_key(kZone);
  expression.set_operator_("In");
  expression.add_values("zone1");
  expression.add_values("zone2");
}

void OnTheOneNode(corev1::Pod& pod) {
  auto& field = *pod.mutable_spec()
                     ->mutable_affinity()
                     ->mutable_node_affinity()
                     ->mutable_required_during_scheduling_ignored_during_execution()
                     ->add_node_selector_terms()
                     ->add_match_fields();
  field.set_key("metadata.name");
  field.set_operator_("In");
  field.add_values("scheduler-perf-node");
}

Edit Spread(const char* when) {
  return [=](corev1::Pod& pod) {
    Label("color", "blue")(pod);
    auto& constraint = *pod.mutable_spec()->add_topology_spread_constraints();
    constraint.set_max_skew(5);
    constraint.set_topology_key(kZone);
    constraint.set_when_unsatisfiable(when);
    (*constraint.mutable_label_selector()->mutable_match_labels())["color"] = "blue";
  };
}

corev1::Service ServiceFor(const std::string& ns, const std::string& key, const std::string& value) {
  corev1::Service service;
  service.mutable_metadata()->set_name("svc");
  service.mutable_metadata()->set_namespace_(ns);
  (*service.mutable_spec()->mutable_selector())[key] = value;
  return service;
}

const std::vector<std::string> kMoons = {"moon-1", "moon-2", "moon-3"};

std::vector<Workload> Plain() {
  using std::chrono::milliseconds;
  const auto init = Pods("init", "sched-0"), pods = Pods("measured", "sched-1");
  std::vector<Workload> out;
  out.push_back(
      {"SchedulingBasic", 5000, 1000, 10000, 680, Nodes(), init, pods, nullptr, false, false, {}, {}});
  out.push_back({"SchedulingNodeAffinity",
                 5000,
                 5000,
                 10000,
                 220,
                 Nodes({"zone1"}),
                 Pods("init", "sched-0", NodeAffinity),
                 Pods("measured", "sched-1", NodeAffinity),
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  const auto daemon_node = [](int i) {
    return i == 0 ? Node("scheduler-perf-node", {}, 0, "90000", "4000", "32Ti")
                  : Node("node-" + std::to_string(i), {}, i);
  };
  out.push_back({"SchedulingDaemonset",
                 15000,
                 0,
                 30000,
                 1100,
                 daemon_node,
                 nullptr,
                 Pods("measured", "sched-1", OnTheOneNode, "10m", "10Mi"),
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  out.push_back({"SchedulingWithMixedChurn",
                 5000,
                 0,
                 10000,
                 710,
                 Nodes(),
                 nullptr,
                 pods,
                 Pods("churn", "churn", Priority(10), "9", "500Mi"),
                 true,
                 true,
                 milliseconds(1000),
                 {}});
  out.push_back({"Unschedulable",
                 5000,
                 20000,
                 10000,
                 600,
                 Nodes(),
                 init,
                 pods,
                 Pods("churn", "churn", Priority(10), "9", "500Mi"),
                 false,
                 false,
                 milliseconds(200),
                 {}});
  const auto low = Pods("init", "sched-0", nullptr, "900m", "500Mi");
  const auto high = Pods("churn", "churn", Priority(10), "3", "500Mi");
  out.push_back({"PreemptionAsync",
                 5000,
                 20000,
                 5000,
                 570,
                 Nodes(),
                 low,
                 pods,
                 high,
                 false,
                 false,
                 milliseconds(200),
                 {}});
  out.push_back({"PreemptionBasic",
                 5000,
                 20000,
                 5000,
                 0,
                 Nodes(),
                 low,
                 Pods("measured", "sched-1", Priority(10), "3", "500Mi"),
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  return out;
}

std::vector<Workload> Related() {
  const auto init = Pods("init", "sched-0"), pods = Pods("measured", "sched-1");
  const auto both = [](const char* name, const Edit& edit, int init_pods, int measured, int threshold,
                       std::vector<std::string> zones = {}) {
    return Workload{name,
                    5000,
                    init_pods,
                    measured,
                    threshold,
                    Nodes(std::move(zones)),
                    Pods("init", "sched-0", edit),
                    Pods("measured", "sched-1", edit),
                    nullptr,
                    false,
                    false,
                    {},
                    {}};
  };
  std::vector<Workload> out;
  out.push_back({"TopologySpreading",
                 5000,
                 5000,
                 5000,
                 460,
                 Nodes(kMoons),
                 init,
                 Pods("measured", "sched-1", Spread("DoNotSchedule")),
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  out.push_back({"PreferredTopologySpreading",
                 5000,
                 5000,
                 5000,
                 340,
                 Nodes(kMoons),
                 init,
                 Pods("measured", "sched-1", Spread("ScheduleAnyway")),
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  out.push_back({"DefaultTopologySpreading",
                 5000,
                 5000,
                 10000,
                 160,
                 Nodes(kMoons),
                 init,
                 Pods("measured", "sched-1", Label("app", "web")),
                 nullptr,
                 false,
                 false,
                 {},
                 {ServiceFor("sched-1", "app", "web")}});
  out.push_back(both("SchedulingPodAffinity", Affinity, 5000, 5000, 35, {"zone1"}));
  out.push_back(both("SchedulingPodAntiAffinity", AntiAffinity, 1000, 2000, 60));
  out.push_back(both("SchedulingPreferredPodAffinity", PreferredAffinity, 5000, 5000, 90));
  out.push_back(both("SchedulingPreferredPodAntiAffinity", PreferredAntiAffinity, 5000, 5000, 90));
  const auto mixed = [](int i) {
    const Edit edits[] = {nullptr, Affinity, AntiAffinity, PreferredAffinity, PreferredAntiAffinity};
    return Pods("init", "sched-0", edits[i % 5])(i);
  };
  out.push_back({"MixedSchedulingBasePod",
                 5000,
                 10000,
                 5000,
                 140,
                 Nodes({"zone1"}),
                 mixed,
                 pods,
                 nullptr,
                 false,
                 false,
                 {},
                 {}});
  return out;
}

}  // namespace

std::vector<Workload> Workloads() {
  std::vector<Workload> out = Plain();
  for (Workload& workload : Related()) out.push_back(std::move(workload));
  return out;
}

}  // namespace keelson::scheduler::perf
