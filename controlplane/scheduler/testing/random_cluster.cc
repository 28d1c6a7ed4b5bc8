#include "controlplane/scheduler/testing/random_cluster.h"

#include <algorithm>

#include "controlplane/scheduler/testing/objects.h"
#include "controlplane/scheduler/volumes/volume_plan.h"
#include "lib/api/meta.h"

namespace keelson::scheduler::testing {

RandomCluster::RandomCluster(uint64_t seed, int nodes) : random_(seed) {
  for (const char* ns : {"x", "y"}) {
    const std::string team = Chance(50) ? "red" : "blue";
    auto labels = std::make_shared<api::LabelMap>();
    (*labels)["team"] = team;
    cache_.SetNamespace(ns, labels);
    reference_.namespaces[ns]["team"] = team;
  }
  MakeClasses();
  for (int i = 0; i < nodes; ++i) AddNode();
  for (int i = 0; i < 8; ++i) AddClaim();
}

void RandomCluster::Change() {
  const int what = Below(30);
  if (what == 0) AddNode();
  if (what == 1) RemoveNode();
  if (what == 2) ChangeNode();
  if (what == 3 || what == 4) RemovePod();
  if (what == 5) TerminatePod();
  if (what == 6) SetServices();
  if (what == 7 || what == 8) SetBudgets();
  if (what == 9 || what == 10) AddClaim();
  if (what == 11 || what == 12) SetRoom();
  if (what == 13 || what == 14) BindSomeClaim();
}

void RandomCluster::SetNode(const corev1::Node& node) {
  cache_.SetNode(std::make_shared<const NodeFacts>(node, words_.resources));
  for (corev1::Node& known : reference_.nodes) {
    if (known.metadata().name() == node.metadata().name()) {
      known = node;
      return;
    }
  }
  reference_.nodes.push_back(node);
}

void RandomCluster::Furnish(corev1::Node& node) {
  auto& labels = *node.mutable_metadata()->mutable_labels();
  labels.clear();
  labels["kubernetes.io/hostname"] = node.metadata().name();
  if (Chance(90)) labels[kZone] = "z" + std::to_string(Below(3));
  if (Chance(30)) labels["disk"] = "ssd";
  node.mutable_spec()->clear_taints();
  node.mutable_spec()->set_unschedulable(Chance(5));
  if (Chance(20)) {
    corev1::Taint& taint = *node.mutable_spec()->add_taints();
    taint.set_key("t");
    taint.set_effect(Chance(50) ? "NoSchedule" : "PreferNoSchedule");
  }
  node.mutable_status()->clear_images();
  if (Chance(40)) {
    corev1::ContainerImage& image = *node.mutable_status()->add_images();
    image.add_names("app" + std::to_string(Below(2)) + ":latest");
    image.set_size_bytes((100 + Below(900)) * 1024LL * 1024);
  }
}

void RandomCluster::AddNode() {
  corev1::Node node = MakeNode("n" + std::to_string(made_++), std::to_string(1 + Below(4)),
                               std::to_string(1 + Below(4)) + "Gi", std::to_string(3 + Below(6)));
  Furnish(node);
  SetNode(node);
  if (!Chance(50)) return;
  storagev1::CSINode drivers;
  storagev1::CSINodeDriver& driver = *drivers.mutable_spec()->add_drivers();
  driver.set_name(kDriver);
  driver.mutable_allocatable()->set_count(1 + Below(2));
  catalog_.SetNodeDrivers(node.metadata().name(), std::make_shared<const storagev1::CSINode>(drivers));
  reference_.volume_limits[node.metadata().name()] = driver.allocatable().count();
}

void RandomCluster::ChangeNode() {
  if (reference_.nodes.empty()) return;
  corev1::Node node = Any(reference_.nodes);
  Furnish(node);
  SetNode(node);
}

void RandomCluster::RemoveNode() {
  if (reference_.nodes.size() < 3) return;
  const std::string name = Any(reference_.nodes).metadata().name();
  cache_.RemoveNode(name);
  std::erase_if(reference_.nodes, [&](const corev1::Node& node) { return node.metadata().name() == name; });
  // Pods go with their node, as the pod garbage collector has it.
  for (const corev1::Pod& pod : reference_.pods) {
    if (pod.spec().node_name() == name) cache_.RemovePod(api::KeyOf(pod));
  }
  std::erase_if(reference_.pods, [&](const corev1::Pod& pod) { return pod.spec().node_name() == name; });
  for (const auto& [pod, promised] : reference_.nominated) {
    if (promised == name) cache_.Nominate(Info(pod, words_), "");
  }
  std::erase_if(reference_.nominated, [&](const auto& item) { return item.second == name; });
}

void RandomCluster::RemovePod() {
  if (reference_.pods.empty()) return;
  const std::string key = api::KeyOf(Any(reference_.pods));
  cache_.RemovePod(key);
  std::erase_if(reference_.pods, [&](const corev1::Pod& pod) { return api::KeyOf(pod) == key; });
}

void RandomCluster::TerminatePod() {
  if (reference_.pods.empty()) return;
  corev1::Pod& pod = reference_.pods[static_cast<size_t>(Below(static_cast<int>(reference_.pods.size())))];
  pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  cache_.SetPod(Info(pod, words_));
}

void RandomCluster::SetServices() {
  reference_.services.clear();
  for (const char* ns : {"x", "y"}) {
    for (const char* app : {"a0", "a1", "a2"}) {
      if (Chance(50)) reference_.services.emplace(ns, app);
    }
  }
  services_.Set(reference_.services);
}

void RandomCluster::SetBudgets() {
  std::vector<DisruptionBudget> budgets;
  reference_.budgets.clear();
  for (int i = Below(4); i > 0; --i) {
    Reference::Budget& plain = reference_.budgets.emplace_back();
    plain.ns = Chance(70) ? "x" : "y";
    (*plain.selector.mutable_match_labels())["app"] = "a" + std::to_string(Below(3));
    plain.allowed = Below(3);
    if (!reference_.pods.empty() && Chance(50)) plain.disrupted = Any(reference_.pods).metadata().name();
    budgets.push_back(
        {plain.ns, *api::LabelSelector::From(plain.selector), plain.allowed, {plain.disrupted}});
  }
  executor_.budgets_ = std::make_shared<const std::vector<DisruptionBudget>>(std::move(budgets));
}

void RandomCluster::MakeClasses() {
  const auto make = [&](const std::string& name, const char* provisioner, const char* mode) {
    storagev1::StorageClass made;
    made.mutable_metadata()->set_name(name);
    made.set_provisioner(provisioner);
    made.set_volume_binding_mode(mode);
    if (name == "make" && Chance(50)) {
      auto& expression = *made.add_allowed_topologies()->add_match_label_expressions();
      expression.set_key(kZone);
      for (const char* zone : {"z0", "z1"}) expression.add_values(zone);
      reference_.classes[name].zones = {"z0", "z1"};
    }
    reference_.classes[name].waits = mode == std::string("WaitForFirstConsumer");
    reference_.classes[name].provisions = name == "make";
    catalog_.SetClass(name, std::make_shared<const storagev1::StorageClass>(made));
  };
  make("wait", kNoProvisioner, "WaitForFirstConsumer");
  make("make", kDriver, "WaitForFirstConsumer");
  make("now", kNoProvisioner, "Immediate");
  storagev1::CSIDriver driver;
  driver.mutable_spec()->set_storage_capacity(true);
  catalog_.SetDriver(kDriver, std::make_shared<const storagev1::CSIDriver>(driver));
  for (int i = 0; i < 4; ++i) SetRoom();
}

void RandomCluster::SetRoom() {
  const std::string name = "room" + std::to_string(Below(4));
  if (Chance(20)) {
    catalog_.SetCapacity(name, nullptr);
    reference_.rooms.erase(name);
    return;
  }
  const std::string zone = "z" + std::to_string(Below(3));
  const int gigabytes = Below(5);
  storagev1::CSIStorageCapacity capacity;
  capacity.mutable_metadata()->set_name(name);
  capacity.set_storage_class_name("make");
  (*capacity.mutable_node_topology()->mutable_match_labels())[kZone] = zone;
  const std::string size = std::to_string(gigabytes) + "Gi";
  if (Chance(50)) {
    capacity.mutable_capacity()->set_string(size);
  } else {
    capacity.mutable_capacity()->set_string("100Gi");
    capacity.mutable_maximum_volume_size()->set_string(size);
  }
  catalog_.SetCapacity(name, std::make_shared<const storagev1::CSIStorageCapacity>(capacity));
  reference_.rooms[name] = {zone, int64_t{gigabytes} << 30};
}

void RandomCluster::SetClaim(corev1::PersistentVolumeClaim claim) {
  claim.mutable_metadata()->set_resource_version(std::to_string(++version_));
  reference_.claims[api::KeyOf(claim)] = claim;
  catalog_.SetClaim(api::KeyOf(claim), std::make_shared<const corev1::PersistentVolumeClaim>(claim));
}

void RandomCluster::SetVolume(corev1::PersistentVolume volume) {
  const std::string& name = volume.metadata().name();
  volume.mutable_metadata()->set_resource_version(std::to_string(++version_));
  reference_.volumes[name] = volume;
  catalog_.SetVolume(name, std::make_shared<const corev1::PersistentVolume>(volume));
}

void RandomCluster::Bind(corev1::PersistentVolumeClaim claim, corev1::PersistentVolume volume) {
  volume.mutable_spec()->mutable_claim_ref()->set_name(claim.metadata().name());
  volume.mutable_spec()->mutable_claim_ref()->set_namespace_(claim.metadata().namespace_());
  volume.mutable_status()->set_phase("Bound");
  claim.mutable_spec()->set_volume_name(volume.metadata().name());
  (*claim.mutable_metadata()->mutable_annotations())[kBindCompleted] = "yes";
  SetVolume(volume);
  SetClaim(claim);
}

void RandomCluster::BindSomeClaim() {
  std::vector<corev1::PersistentVolumeClaim> unbound;
  for (const auto& [key, claim] : reference_.claims) {
    const bool asked = claim.metadata().annotations().contains(kSelectedNode);
    if (claim.spec().volume_name().empty() && (asked || claim.spec().storage_class_name() == "now")) {
      unbound.push_back(claim);
    }
  }
  if (unbound.empty()) return;
  corev1::PersistentVolumeClaim claim = Any(unbound);
  if (claim.spec().storage_class_name() == "make" && Chance(30)) {
    claim.mutable_metadata()->mutable_annotations()->erase(kSelectedNode);
    SetClaim(claim);
  } else {
    Bind(claim, SomeVolume(claim.spec().storage_class_name()));
  }
}

corev1::PersistentVolume RandomCluster::SomeVolume(const std::string& storage_class) {
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name("v" + std::to_string(made_++));
  (*volume.mutable_spec()->mutable_capacity())["storage"].set_string(SomeSize());
  volume.mutable_spec()->set_storage_class_name(storage_class);
  volume.mutable_status()->set_phase("Available");
  auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
  csi.set_driver(kDriver);
  csi.set_volume_handle(volume.metadata().name());
  if (Chance(60)) {
    auto& expression = *volume.mutable_spec()
                            ->mutable_node_affinity()
                            ->mutable_required()
                            ->add_node_selector_terms()
                            ->add_match_expressions();
    expression.set_key(kZone);
    expression.set_operator_("In");
    expression.add_values("z" + std::to_string(Below(3)));
  } else if (Chance(50)) {
    (*volume.mutable_metadata()->mutable_labels())[kZone] = "z" + std::to_string(Below(3));
  }
  for (const char* one : {"ReadWriteOncePod", "ReadWriteOnce"}) volume.mutable_spec()->add_access_modes(one);
  return volume;
}

void RandomCluster::AddClaim() {
  const std::string storage_class = Chance(50) ? "wait" : Chance(70) ? "make" : "now";
  corev1::PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_name("c" + std::to_string(made_++));
  claim.mutable_metadata()->set_namespace_(Chance(70) ? "x" : "y");
  claim.mutable_spec()->set_storage_class_name(storage_class);
  const std::string mode = Chance(30) ? "ReadWriteOncePod" : "ReadWriteOnce";
  claim.mutable_spec()->add_access_modes(mode);
  (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string(SomeSize());
  SetClaim(claim);
  if (storage_class == "make" && Chance(60)) return;
  const corev1::PersistentVolume volume = SomeVolume(storage_class);
  SetVolume(volume);
  if (Chance(60)) Bind(claim, volume);
}

void RandomCluster::UseClaims(corev1::Pod& pod) {
  std::vector<std::string> names;
  for (const auto& [key, claim] : reference_.claims) {
    if (claim.metadata().namespace_() == pod.metadata().namespace_()) {
      names.push_back(claim.metadata().name());
    }
  }
  std::shuffle(names.begin(), names.end(), random_);
  names.resize(std::min(names.size(), static_cast<size_t>(1 + Below(2))));
  for (const std::string& name : names) {
    corev1::Volume& volume = *pod.mutable_spec()->add_volumes();
    volume.set_name(name);
    volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(name);
  }
}

metav1::LabelSelector RandomCluster::Selector() {
  metav1::LabelSelector out;
  if (Chance(80)) (*out.mutable_match_labels())["app"] = "a" + std::to_string(Below(3));
  return out;
}

corev1::PodAffinityTerm RandomCluster::Term() {
  corev1::PodAffinityTerm out;
  if (Chance(95)) *out.mutable_label_selector() = Selector();
  out.set_topology_key(Chance(50) ? kZone : "kubernetes.io/hostname");
  if (Chance(15)) out.add_namespaces("y");
  if (Chance(15)) {
    out.mutable_namespace_selector();
    if (Chance(60)) (*out.mutable_namespace_selector()->mutable_match_labels())["team"] = "red";
  }
  return out;
}

corev1::Pod RandomCluster::RandomPod() {
  corev1::Pod pod =
      MakePod("p" + std::to_string(made_++), Chance(80) ? std::to_string(100 * (1 + Below(8))) + "m" : "",
              Chance(70) ? std::to_string(64 * (1 + Below(10))) + "Mi" : "");
  pod.mutable_metadata()->set_namespace_(Chance(70) ? "x" : "y");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "a" + std::to_string(Below(3));
  pod.mutable_status()->mutable_start_time()->set_seconds(1000 + made_);
  corev1::PodSpec& spec = *pod.mutable_spec();
  spec.mutable_containers(0)->set_image("app" + std::to_string(Below(2)));
  spec.set_priority(Below(3) * 10);
  if (Chance(10)) {
    corev1::ContainerPort& port = *spec.mutable_containers(0)->add_ports();
    port.set_container_port(80);
    port.set_host_port(8000 + Below(2));
  }
  if (Chance(30)) spec.add_tolerations()->set_operator_("Exists");
  if (Chance(15)) (*spec.mutable_node_selector())["disk"] = "ssd";
  if (Chance(20)) {
    auto& preferred = *spec.mutable_affinity()
                           ->mutable_node_affinity()
                           ->add_preferred_during_scheduling_ignored_during_execution();
    preferred.set_weight(1 + Below(10));
    auto& expression = *preferred.mutable_preference()->add_match_expressions();
    expression.set_key(kZone);
    expression.set_operator_("In");
    expression.add_values("z1");
  }
  const int constraints = Chance(40) ? 1 + Below(2) : 0;
  for (int i = 0; i < constraints; ++i) {
    auto& constraint = *spec.add_topology_spread_constraints();
    constraint.set_max_skew(1 + Below(2));
    constraint.set_topology_key(i == 0 ? kZone : "kubernetes.io/hostname");
    constraint.set_when_unsatisfiable(Chance(50) ? "DoNotSchedule" : "ScheduleAnyway");
    *constraint.mutable_label_selector() = Selector();
    if (Chance(20)) constraint.set_node_affinity_policy("Ignore");
    if (Chance(20)) constraint.set_node_taints_policy("Honor");
    if (constraint.when_unsatisfiable() == "DoNotSchedule" && Chance(20)) {
      constraint.set_min_domains(1 + Below(4));
    }
  }
  if (Chance(12)) {
    *spec.mutable_affinity()
         ->mutable_pod_affinity()
         ->add_required_during_scheduling_ignored_during_execution() = Term();
  }
  if (Chance(12)) {
    *spec.mutable_affinity()
         ->mutable_pod_anti_affinity()
         ->add_required_during_scheduling_ignored_during_execution() = Term();
  }
  if (Chance(15)) {
    auto& term = *spec.mutable_affinity()
                      ->mutable_pod_affinity()
                      ->add_preferred_during_scheduling_ignored_during_execution();
    term.set_weight(1 + Below(100));
    *term.mutable_pod_affinity_term() = Term();
  }
  if (Chance(15)) {
    auto& term = *spec.mutable_affinity()
                      ->mutable_pod_anti_affinity()
                      ->add_preferred_during_scheduling_ignored_during_execution();
    term.set_weight(1 + Below(100));
    *term.mutable_pod_affinity_term() = Term();
  }
  if (Chance(20)) UseClaims(pod);
  return pod;
}

}  // namespace keelson::scheduler::testing
