#include "controlplane/controllers/attachdetach/controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/ownership.h"
#include "controlplane/controllers/common/pod_claims.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {
namespace {

using api::storage::v1::CSIDriver;
using google::protobuf::util::MessageDifferencer;

constexpr char kByVolume[] = "volume", kByNode[] = "node", kClaimantsByNode[] = "claimants-by-node";
constexpr char kManaged[] = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr char kKeepsTerminated[] = "volumes.kubernetes.io/keep-terminated-pod-volumes";
constexpr char kCsiPrefix[] = "kubernetes.io/csi/";
constexpr std::chrono::minutes kPatience{2};  // with an attacher that does not answer

std::vector<std::string> VolumeOf(const VolumeAttachment& attachment) {
  if (!attachment.spec().source().has_persistent_volume_name()) return {};
  return {attachment.spec().source().persistent_volume_name()};
}

std::string VolumeOf(const corev1::PersistentVolumeClaim& claim) { return claim.spec().volume_name(); }

// True when the kubelet leaves attach and detach to this controller.
bool IsManaged(const corev1::Node& node) { return node.metadata().annotations().contains(kManaged); }

bool KeepsTerminated(const corev1::Node& node) {
  auto keeps = node.metadata().annotations().find(kKeepsTerminated);
  return keeps != node.metadata().annotations().end() && keeps->second == "true";
}

void CountForced(const char* reason) {
  static metrics::Family& total = TheMetrics().forced_detaches;
  total.With({reason}).Increment();
}

// The node fields that affect attachments, for change detection.
corev1::Node Facts(const corev1::Node& node) {
  corev1::Node out;
  *out.mutable_status()->mutable_volumes_in_use() = node.status().volumes_in_use();
  *out.mutable_status()->mutable_volumes_attached() = node.status().volumes_attached();
  *out.mutable_spec()->mutable_taints() = node.spec().taints();
  if (ViewOf(&node, "").healthy) out.mutable_status()->add_conditions()->set_type("Ready");
  if (IsManaged(node)) (*out.mutable_metadata()->mutable_annotations())[kManaged] = "true";
  if (KeepsTerminated(node)) (*out.mutable_metadata()->mutable_annotations())[kKeepsTerminated] = "true";
  return out;
}

using PodsByNode = std::map<std::string, std::vector<std::shared_ptr<const corev1::Pod>>>;

void CountAttachment(const VolumeAttachment& attachment, int by) {
  const std::string plugin = "kubernetes.io/csi:" + attachment.spec().attacher();
  metrics::Family& volumes = TheMetrics().attachdetach_total_volumes;
  if (!attachment.metadata().has_deletion_timestamp()) {
    volumes.With({plugin, "desired_state_of_world"}).Add(by);
  }
  if (!attachment.status().attached()) return;
  volumes.With({plugin, "actual_state_of_world"}).Add(by);
  TheMetrics().attachable_volumes_in_use.With({attachment.spec().node_name(), plugin}).Add(by);
}

// Names the other pods of the pod's namespace, and only counts those of other namespaces.
std::string WhoHasIt(const corev1::Pod& pod,
                     const std::map<std::string, std::shared_ptr<const VolumeAttachment>>& attachments,
                     const PodsByNode& users) {
  std::vector<std::string> here;
  size_t elsewhere = 0;
  for (const auto& [node, pods] : users) {
    if (!attachments.contains(node)) continue;
    for (const auto& other : pods) {
      if (other->metadata().namespace_() == pod.metadata().namespace_()) {
        here.push_back(other->metadata().name());
      } else {
        ++elsewhere;
      }
    }
  }
  if (here.empty() && elsewhere == 0) {
    return "Volume is already exclusively attached to one node and can't be attached to another";
  }
  if (here.empty()) {
    return fmt::format("Volume is already used by {} pod(s) in different namespaces", elsewhere);
  }
  return fmt::format("Volume is already used by pod(s) {}", fmt::join(here, ", ")) +
         (elsewhere > 0 ? fmt::format(" and {} pod(s) in different namespaces", elsewhere) : "");
}

}  // namespace

AttachDetachController::AttachDetachController(client::RestClient api, client::InformerFactory& informers,
                                               client::EventRecorder& events, Clock& clock,
                                               std::chrono::seconds force_after)
    : Controller("attachdetach", clock),
      api_(std::move(api)),
      events_(events),
      force_after_(force_after),
      pods_(informers.Get<corev1::Pod>()),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()),
      volumes_(informers.Get<corev1::PersistentVolume>()),
      nodes_(informers.Get<corev1::Node>()),
      attachments_(informers.Get<VolumeAttachment>()),
      drivers_(informers.Get<CSIDriver>()) {
  pods_.AddIndex(kByClaim, ClaimsOf);
  pods_.AddIndex(kClaimantsByNode, [](const corev1::Pod& pod) -> std::vector<std::string> {
    if (pod.spec().node_name().empty() || ClaimsOf(pod).empty()) return {};
    return {pod.spec().node_name()};
  });
  attachments_.AddIndex(kByVolume, [](const VolumeAttachment& one) { return VolumeOf(one); });
  attachments_.AddIndex(
      kByNode, [](const VolumeAttachment& one) { return std::vector<std::string>{one.spec().node_name()}; });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) { OnPod(change); });
  claims_.AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    if (!VolumeOf(change.object()).empty()) queue().Add(VolumeOf(change.object()));
  });
  volumes_.AddHandler(
      [this](const client::Change<corev1::PersistentVolume>& change) { queue().Add(change.key); });
  nodes_.AddHandler([this](const client::Change<corev1::Node>& change) { OnNode(change); });
  attachments_.AddHandler([this](const client::Change<VolumeAttachment>& change) {
    if (change.old_object) CountAttachment(*change.old_object, -1);
    if (change.new_object) CountAttachment(*change.new_object, 1);
    for (const std::string& volume : VolumeOf(change.object())) queue().Add(volume);
  });
  drivers_.AddHandler([this](const client::Change<CSIDriver>& change) {
    for (const auto& volume : volumes_.List()) {
      if (volume->spec().persistent_volume_source().csi().driver() == change.key) {
        queue().Add(volume->metadata().name());
      }
    }
  });
}

void AttachDetachController::EnqueueVolumesOf(const corev1::Pod& pod) {
  if (pod.spec().node_name().empty()) return;
  for (const std::string& key : ClaimsOf(pod)) {
    auto claim = claims_.Get(key);
    if (claim && !VolumeOf(*claim).empty()) queue().Add(VolumeOf(*claim));
  }
}

void AttachDetachController::OnPod(const client::Change<corev1::Pod>& change) {
  auto uses = [](const std::shared_ptr<const corev1::Pod>& pod) {
    return pod && !pod->spec().node_name().empty() && NeedsVolumes(*pod, false);
  };
  if (uses(change.old_object) != uses(change.new_object) || !change.new_object) {
    EnqueueVolumesOf(change.object());
  }
}

void AttachDetachController::OnNode(const client::Change<corev1::Node>& change) {
  if (change.old_object && change.new_object &&
      MessageDifferencer::Equals(Facts(*change.old_object), Facts(*change.new_object))) {
    return;
  }
  for (const auto& attachment : attachments_.ByIndex(kByNode, change.key)) {
    for (const std::string& volume : VolumeOf(*attachment)) queue().Add(volume);
  }
  auto policy = [](const std::shared_ptr<const corev1::Node>& node) {
    return std::pair(node && IsManaged(*node), node && KeepsTerminated(*node));
  };
  if (policy(change.old_object) == policy(change.new_object)) return;
  for (const auto& pod : pods_.ByIndex(kClaimantsByNode, change.key)) EnqueueVolumesOf(*pod);
}

bool AttachDetachController::NeedsAttaching(const corev1::PersistentVolume& volume) const {
  if (!volume.spec().persistent_volume_source().has_csi()) return false;
  auto driver = drivers_.Get(volume.spec().persistent_volume_source().csi().driver());
  return !driver || !driver->spec().has_attach_required() || driver->spec().attach_required();
}

AttachDetachController::Pods AttachDetachController::UsersOf(const corev1::PersistentVolume& volume) const {
  Pods out;
  if (!volume.spec().has_claim_ref() || !NeedsAttaching(volume)) return out;
  const std::string key =
      api::KeyOf(volume.spec().claim_ref().namespace_(), volume.spec().claim_ref().name());
  auto claim = claims_.Get(key);
  const bool bound = claim && claim->metadata().uid() == volume.spec().claim_ref().uid() &&
                     VolumeOf(*claim) == volume.metadata().name();
  if (!bound) return out;
  for (const auto& pod : pods_.ByIndex(kByClaim, key)) {
    if (pod->spec().node_name().empty()) continue;
    auto node = nodes_.Get(pod->spec().node_name());
    if (node && IsManaged(*node) && NeedsVolumes(*pod, KeepsTerminated(*node))) {
      out[pod->spec().node_name()].push_back(pod);
    }
  }
  return out;
}

AttachDetachController::Memory& AttachDetachController::Remember(const std::string& volume,
                                                                 const Attachments& attachments,
                                                                 const Pods& wanted) {
  Memory& memory = memory_[volume];
  auto over = [&](const std::string& node) { return !attachments.contains(node); };
  std::erase_if(memory.unwanted,
                [&](const auto& one) { return over(one.first) || wanted.contains(one.first); });
  std::erase_if(memory.told, [&](const auto& one) { return over(one.first); });
  std::erase_if(memory.leaving, [&](const auto& node) { return over(node) || wanted.contains(node); });
  std::erase_if(memory.in_use, [&](const auto& one) { return over(one.first); });
  std::erase_if(memory.awaited,
                [&](const auto& one) { return over(one.first) || !wanted.contains(one.first); });
  for (const auto& [node, attachment] : attachments) {
    if (!wanted.contains(node)) memory.unwanted.emplace(node, clock().SteadyNow());
  }
  return memory;
}

std::map<std::string, NodeView> AttachDetachController::ViewNodes(const std::string& unique_name,
                                                                  const Attachments& attachments,
                                                                  const Pods& wanted, Memory& memory) const {
  std::map<std::string, NodeView> out;
  for (const auto& [node, pods] : wanted) out[node] = ViewOf(nodes_.Get(node).get(), unique_name);
  for (const auto& [node, one] : attachments) {
    NodeView& view = out[node] = ViewOf(nodes_.Get(node).get(), unique_name);
    auto [last, first] = memory.in_use.emplace(node, true);
    if (view.known) last->second = view.in_use;
    view.in_use = last->second;
  }
  return out;
}

Result<Requeue> AttachDetachController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  Attachments attachments;
  for (auto& one : attachments_.ByIndex(kByVolume, key)) attachments[one->spec().node_name()] = one;
  auto volume = volumes_.Get(key);
  if (attachments.empty()) memory_.erase(key);
  // Leave an attachment alone when its volume does not exist: its use is unknown.
  if (!volume || (attachments.empty() && !NeedsAttaching(*volume))) return Requeue{};
  const Pods users = UsersOf(*volume);
  std::set<std::string> wanted;
  for (const auto& [node, pods] : users) wanted.insert(node);
  Memory& memory = Remember(key, attachments, users);
  const AttachPlan plan = PlanAttachments(*volume, wanted, attachments,
                                          ViewNodes(UniqueVolumeName(*volume), attachments, users, memory),
                                          memory.unwanted, clock().SteadyNow(), force_after_);

  for (const std::string& node : plan.attach) KEELSON_RETURN_IF_ERROR(Attach(api, *volume, node, users));
  TellBlocked(*volume, plan.blocked, attachments, users, memory);
  memory.leaving.insert(plan.detach.begin(), plan.detach.end());
  for (const auto& [node, attachment] : attachments) {
    KEELSON_RETURN_IF_ERROR(ReportAttached(api, node));
    TellOutcome(*volume, *attachment, users, memory);
  }
  for (const std::string& node : plan.detach) {
    Result<> gone = api.Delete<VolumeAttachment>("", attachments.at(node)->metadata().name());
    if (!gone && !gone.error().Is(Code::kNotFound)) return gone.error().Wrap("detach " + key);
    if (auto forced = plan.forced.find(node); forced != plan.forced.end()) CountForced(forced->second);
  }
  Requeue again;
  again.after = TellSilence(*volume, attachments, users, memory);
  for (const auto& [node, left] : plan.waiting) {
    if (!again.after || left < *again.after) again.after = left;
  }
  return again;
}

Result<> AttachDetachController::Attach(const client::RestClient& api, const corev1::PersistentVolume& volume,
                                        const std::string& node, const Pods& users) {
  Result<VolumeAttachment> made = api.Create(MakeAttachment(volume, node));
  if (made || made.error().Is(Code::kAlreadyExists)) return {};
  for (const auto& pod : users.at(node)) {
    events_.Record(*pod, "Warning", "FailedAttachVolume",
                   fmt::format("AttachVolume.Attach failed for volume \"{}\" : {}", volume.metadata().name(),
                               made.error().message()));
  }
  return made.error().Wrap("attach " + volume.metadata().name());
}

Result<> AttachDetachController::ReportAttached(const client::RestClient& api, const std::string& node) {
  auto object = nodes_.Get(node);
  if (!object) return {};
  std::set<std::string> attached;
  for (const auto& one : attachments_.ByIndex(kByNode, node)) {
    if (!one->status().attached() || one->metadata().has_deletion_timestamp()) continue;
    for (const std::string& name : VolumeOf(*one)) {
      auto known = memory_.find(name);
      const bool leaving = known != memory_.end() && known->second.leaving.contains(node);
      auto volume = volumes_.Get(name);
      if (volume && !leaving) attached.insert(UniqueVolumeName(*volume));
    }
  }
  std::set<std::string> told;
  std::string list;
  auto add = [&](const std::string& name, const std::string& path) {
    list += fmt::format("{}{{\"name\":{},\"devicePath\":{}}}", list.empty() ? "" : ",", JsonQuoted(name),
                        JsonQuoted(path));
  };
  for (const corev1::AttachedVolume& one : object->status().volumes_attached()) {
    if (one.name().rfind(kCsiPrefix, 0) == 0) {
      told.insert(one.name());
    } else {
      add(one.name(), one.device_path());  // attached by another controller
    }
  }
  if (told == attached) return {};
  for (const std::string& name : attached) add(name, "");
  Result<corev1::Node> stored =
      api.Patch<corev1::Node>("", node, client::PatchType::kStrategicMerge,
                              "{\"status\":{\"volumesAttached\":[" + list + "]}}", "status");
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error().Wrap("report attached volumes");
  return {};
}

void AttachDetachController::TellBlocked(const corev1::PersistentVolume& volume,
                                         const std::vector<std::string>& nodes,
                                         const Attachments& attachments, const Pods& users, Memory& memory) {
  const std::set<std::string> told = std::exchange(memory.blocked, {nodes.begin(), nodes.end()});
  for (const std::string& node : nodes) {
    if (told.contains(node)) continue;
    for (const auto& pod : users.at(node)) {
      events_.Record(*pod, "Warning", "FailedAttachVolume",
                     fmt::format("Multi-Attach error for volume \"{}\" {}", volume.metadata().name(),
                                 WhoHasIt(*pod, attachments, users)));
    }
  }
}

void AttachDetachController::TellOutcome(const corev1::PersistentVolume& volume,
                                         const VolumeAttachment& attachment, const Pods& users,
                                         Memory& memory) {
  const bool attached = attachment.status().attached();
  const std::string& error = attachment.status().attach_error().message();
  const std::string outcome = attached ? "attached" : error;
  auto [told, first] = memory.told.emplace(attachment.spec().node_name(), outcome);
  // Attachments that existed before the controller started cause no event.
  if (first ? attached || outcome.empty() : told->second == outcome) return;
  told->second = outcome;
  auto pods = users.find(attachment.spec().node_name());
  if (pods == users.end() || outcome.empty()) return;
  for (const auto& pod : pods->second) {
    if (attached) {
      events_.Record(
          *pod, "Normal", "SuccessfulAttachVolume",
          fmt::format("AttachVolume.Attach succeeded for volume \"{}\" ", volume.metadata().name()));
    } else {
      events_.Record(
          *pod, "Warning", "FailedAttachVolume",
          fmt::format("AttachVolume.Attach failed for volume \"{}\" : {}", volume.metadata().name(), error));
    }
  }
}

std::optional<std::chrono::nanoseconds> AttachDetachController::TellSilence(
    const corev1::PersistentVolume& volume, const Attachments& attachments, const Pods& users,
    Memory& memory) {
  std::optional<std::chrono::nanoseconds> next;
  const SteadyTime now = clock().SteadyNow();
  for (const auto& [node, attachment] : attachments) {
    const auto pods = users.find(node);
    const bool answered = attachment->status().attached() || attachment->status().has_attach_error();
    if (answered || pods == users.end() || attachment->metadata().has_deletion_timestamp()) {
      memory.awaited.erase(node);
      continue;
    }
    SteadyTime& since = memory.awaited.try_emplace(node, now).first->second;
    if (now - since >= kPatience) {
      since = now;
      const auto& csi = volume.spec().persistent_volume_source().csi();
      for (const auto& pod : pods->second) {
        events_.Record(*pod, "Warning", "FailedAttachVolume",
                       fmt::format("AttachVolume.Attach failed for volume \"{}\" : timed out waiting for "
                                   "external-attacher of {} CSI driver to attach volume {}",
                                   volume.metadata().name(), csi.driver(), csi.volume_handle()));
      }
    }
    const std::chrono::nanoseconds left = since + kPatience - now;
    if (!next || left < *next) next = left;
  }
  return next;
}

}  // namespace keelson::controllers
