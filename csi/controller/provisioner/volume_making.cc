// How a volume is made: what the driver is asked for, and what is made of its answer.
#include <fmt/format.h>

#include "csi/controller/model/names.h"
#include "csi/controller/provisioner/content_source.h"
#include "csi/controller/provisioner/provisioner.h"
#include "csi/controller/provisioner/source_node.h"

namespace keelson::csi::controller {
namespace {

constexpr int kDeleteAttempts = 5;

Result<> CheckCapabilities(const DriverInfo& info, DataSource::Kind source, bool modify) {
  auto lacks = [](const char* what) {
    return Error(Code::kInvalid, std::string("CSI driver does not support ") + what);
  };
  if (!info.controller_service) {
    return lacks("dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported");
  }
  if (!info.Can(Capability::CREATE_DELETE_VOLUME)) {
    return lacks("dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported");
  }
  if (source == DataSource::Kind::kSnapshot && !info.Can(Capability::CREATE_DELETE_SNAPSHOT)) {
    return lacks("snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported");
  }
  if (source == DataSource::Kind::kClaim && !info.Can(Capability::CLONE_VOLUME)) {
    return lacks("clone operations: controller CLONE_VOLUME capability is not reported");
  }
  if (modify && !info.Can(Capability::MODIFY_VOLUME)) {
    return lacks("VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported");
  }
  return {};
}

}  // namespace

ProvisionOptions Provisioner::PlanOptions(const DriverInfo& info) const {
  ProvisionOptions out;
  out.driver = info.name;
  out.identity = options_.identity;
  out.name_prefix = options_.name_prefix;
  out.name_uuid_length = options_.name_uuid_length;
  out.default_fs_type = options_.default_fs_type;
  out.extra_create_metadata = options_.extra_create_metadata;
  out.multi_writer = info.Can(Capability::SINGLE_NODE_MULTI_WRITER);
  out.publish_read_only = options_.publish_read_only;
  return out;
}

Provisioner::Attempt<ProvisionPlan> Provisioner::Plan(const Task& task, const DriverInfo& info,
                                                      std::stop_token stop) {
  auto fail = [](State state, const Error& error) { return tl::unexpected(Failure{state, error}); };
  const Claim& claim = *task.claim;
  const client::RestClient api = Api(stop);
  const Result<DataSource> source = SourceOf(claim);
  if (!source) return fail(State::kFinished, source.error());
  if (source->kind == DataSource::Kind::kOther) {
    environment().events.Record(claim, "Normal", "Provisioning",
                                "Assuming an external populator will provision the volume");
    return fail(State::kIgnored, Error(Code::kInvalid, "an external populator provisions the volume"));
  }
  const std::string attributes_class = claim.spec().volume_attributes_class_name();
  if (const Result<> able = CheckCapabilities(info, source->kind, !attributes_class.empty()); !able) {
    return fail(State::kFinished, able.error());
  }
  ProvisionSources sources;
  sources.storage_class = task.storage_class.get();
  storagev1::VolumeAttributesClass attributes;
  if (!attributes_class.empty()) {
    auto found = api.Get<storagev1::VolumeAttributesClass>("", attributes_class);
    if (!found) return fail(State::kNoChange, found.error());
    attributes = *std::move(found);
    sources.attributes_class = &attributes;
  }
  if (source->kind != DataSource::Kind::kNone) {
    auto content = FindContent(api, claim, *source, info.name);
    if (!content) return fail(State::kNoChange, content.error());
    sources.content = *std::move(content);
  }
  if (source->kind == DataSource::Kind::kClaim) {
    if (const Result<> kept = ProtectSource(claim, source->name, stop); !kept) {
      return fail(State::kNoChange, kept.error());
    }
  }
  if (info.topology) {
    if (!nodes_) {
      return fail(State::kNoChange, Error(Code::kInvalid,
                                          "the driver has topology since its restart: restart "
                                          "keelson-csi-controller"));
    }
    const bool alone = options_.topology.strict && !task.node.empty();
    auto topology =
        RequireTopology(claim.metadata().name(), task.storage_class->allowed_topologies(), task.node,
                        alone ? std::vector{nodes_->Get(task.node)} : nodes_->All(), options_.topology);
    if (!topology) {
      return fail(State::kNoChange, topology.error().Wrap("error generating accessibility requirements"));
    }
    sources.topology = *std::move(topology);
  }
  Result<ProvisionPlan> plan = PlanProvision(claim, sources, PlanOptions(info));
  if (!plan) return fail(State::kFinished, plan.error());
  return *std::move(plan);
}

Provisioner::Attempt<Volume> Provisioner::Provision(const Task& task, const DriverInfo& info,
                                                    std::stop_token stop) {
  auto fail = [](State state, const Error& error) { return tl::unexpected(Failure{state, error}); };
  const client::RestClient api = Api(stop);
  if (!task.node.empty()) {
    const auto node = api.Get<corev1::Node>("", task.node);
    if (!node && node.error().Is(Code::kNotFound)) return fail(State::kReschedule, node.error());
    if (!node) return fail(State::kNoChange, node.error().Wrap("failed to get target node"));
  }
  Attempt<ProvisionPlan> plan = Plan(task, info, stop);
  if (!plan) return tl::unexpected(plan.error());
  Strings secrets;
  if (plan->create_secret) {
    Result<Strings> read = ReadSecret(api, *plan->create_secret);
    if (!read) return fail(State::kNoChange, read.error());
    secrets = *std::move(read);
  }
  v1::CreateVolumeRequest request = plan->request;
  *request.mutable_secrets() = secrets;
  const Result<v1::CreateVolumeResponse> reply = driver().CreateVolume(request, stop);
  if (!reply) return tl::unexpected(Judge(task, info, reply.error(), stop));
  const v1::Volume& created = reply->volume();
  const int64_t requested = request.capacity_range().required_bytes();
  if (created.volume_id().empty()) {
    return fail(State::kInBackground, Error(Code::kInternal, "the driver has answered without a volume id"));
  }
  if (created.capacity_bytes() != 0 && created.capacity_bytes() < requested) {
    return tl::unexpected(Discard(
        *plan, secrets, created.volume_id(),
        Error(Code::kInternal, fmt::format("created volume capacity {} less than requested capacity {}",
                                           created.capacity_bytes(), requested)),
        stop));
  }
  if (request.has_volume_content_source() && !created.has_content_source()) {
    return tl::unexpected(Discard(*plan, secrets, created.volume_id(),
                                  Error(Code::kInternal, "volume content source missing"), stop));
  }
  return FinishVolume(*plan, created, PlanOptions(info), info.topology);
}

Provisioner::Failure Provisioner::Judge(const Task& task, const DriverInfo& info, const Error& error,
                                        std::stop_token stop) {
  if (!IsFinal(error)) return {State::kInBackground, error};
  if (error.Is(Code::kBadRequest)) return {State::kInfeasible, error};
  if (!info.topology || task.node.empty()) return {State::kFinished, error};
  if (error.Is(Code::kTooManyRequests)) return {State::kReschedule, error};
  // A driver whose volumes belong to nodes does not find a source that another node has. The scheduler knows of no
  // sources, but goes where a claim's node is selected.
  if (const Result<DataSource> source = SourceOf(*task.claim); source && error.Is(Code::kNotFound)) {
    const Result<std::string> node = NodeOfSource(Api(stop), *task.claim, *source, task.node);
    if (node && !node->empty()) return {State::kReschedule, error, *node};
  }
  return {State::kFinished, error};
}

Provisioner::Failure Provisioner::Discard(const ProvisionPlan& plan, const Strings& secrets,
                                          const std::string& volume_id, Error why, std::stop_token stop) {
  v1::DeleteVolumeRequest request;
  request.set_volume_id(volume_id);
  *request.mutable_secrets() = secrets;
  Result<> deleted;
  for (int attempt = 0; attempt < kDeleteAttempts; ++attempt) {
    deleted = driver().DeleteVolume(request, stop);
    if (deleted) break;
  }
  if (!deleted) {
    why = Error(why.code(), fmt::format("{}. Cleanup of volume {} failed, volume is orphaned: {}",
                                        why.message(), plan.request.name(), deleted.error().message()));
  }
  // The next attempt meets the volume again, or makes another one.
  return {State::kInBackground, std::move(why)};
}

Result<> Provisioner::ProtectSource(const Claim& claim, const std::string& source, std::stop_token stop) {
  auto kept = client::UpdateWithRetry<Claim>(
      Api(stop), claim.metadata().namespace_(), source, "", [&](Claim& live) -> Result<bool> {
        if (HasFinalizer(live.metadata(), kCloningProtection)) return false;
        if (live.metadata().has_deletion_timestamp()) {
          return Error(Code::kInvalid, "the PVC DataSource " + source + " is currently being deleted");
        }
        live.mutable_metadata()->add_finalizers(kCloningProtection);
        return true;
      });
  if (!kept) return kept.error();
  return {};
}

}  // namespace keelson::csi::controller
