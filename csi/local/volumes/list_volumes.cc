#include <optional>

#include "csi/local/host/project_quota.h"
#include "csi/local/model/ids.h"
#include "csi/local/volumes/volume_calls.h"

namespace keelson::csi::local {

namespace {

bool IsVolumeToken(const std::string& token) { return IsId(Kind::kVolume, token); }

}  // namespace

Result<> VolumeCalls::ValidateCapabilities(const v1::ValidateVolumeCapabilitiesRequest& request,
                                           v1::ValidateVolumeCapabilitiesResponse& reply) const {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  if (request.volume_capabilities().empty()) return Error(Code::kInvalid, "volume_capabilities is required");
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  // What is not supported is the call's answer, not its failure.
  auto fits = CheckCapabilities(request.volume_capabilities());
  auto parameters = ParseParameters(request.parameters());
  if (fits && !parameters) fits = parameters.error();
  if (fits && !request.parameters().empty() && parameters->thick != record.thick) {
    fits = Error(Code::kInvalid, "the volume has another provisioning");
  }
  if (fits && !request.parameters().empty() &&
      (parameters->directory != record.directory || parameters->logical != record.logical)) {
    fits = Error(Code::kInvalid, "the volume has another type");
  }
  if (fits && record.directory) fits = CheckDirectoryCapabilities(request.volume_capabilities());
  if (fits && !request.mutable_parameters().empty()) {
    fits = Error(Code::kInvalid, "mutable_parameters are not supported");
  }
  if (fits) fits = CheckVolumeContext(request.volume_context());
  if (!fits) {
    reply.set_message(fits.error().message());
    return {};
  }
  *reply.mutable_confirmed()->mutable_volume_capabilities() = request.volume_capabilities();
  *reply.mutable_confirmed()->mutable_volume_context() = request.volume_context();
  *reply.mutable_confirmed()->mutable_parameters() = request.parameters();
  return {};
}

Result<> VolumeCalls::List(const v1::ListVolumesRequest& request, v1::ListVolumesResponse& reply) const {
  std::vector<VolumeRecord> records = context_.store.Volumes();
  std::erase_if(records, [](const VolumeRecord& record) { return record.ephemeral; });
  std::vector<std::string> ids;
  for (const VolumeRecord& record : records) ids.push_back(record.id);
  KEELSON_ASSIGN_OR_RETURN(Page page,
                           MakePage(ids, request.max_entries(), request.starting_token(), IsVolumeToken));
  std::optional<LogicalSurvey> survey;
  for (size_t i = page.begin; i < page.end; ++i) {
    if (records[i].logical && !survey) survey = context_.logical.Survey();
    v1::ListVolumesResponse::Entry& entry = *reply.add_entries();
    *entry.mutable_volume() = DescribeVolume(context_, records[i]);
    *entry.mutable_status()->mutable_volume_condition() =
        ConditionOf(context_, records[i], survey ? &*survey : nullptr);
  }
  reply.set_next_token(page.next_token);
  return {};
}

Result<> VolumeCalls::Get(const v1::ControllerGetVolumeRequest& request,
                          v1::ControllerGetVolumeResponse& reply) const {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  *reply.mutable_volume() = DescribeVolume(context_, record);
  *reply.mutable_status()->mutable_volume_condition() = ConditionOf(context_, record);
  return {};
}

Result<> VolumeCalls::Capacity(const v1::GetCapacityRequest& request, v1::GetCapacityResponse& reply) const {
  for (const v1::VolumeCapability& capability : request.volume_capabilities()) {
    // No volume of this kind can be made, however much room there is.
    if (!CheckCapability(capability)) return {};
  }
  KEELSON_ASSIGN_OR_RETURN(Parameters parameters, ParseParameters(request.parameters()));
  if (request.has_accessible_topology()) {
    v1::TopologyRequirement requirement;
    *requirement.add_requisite() = request.accessible_topology();
    if (!Reaches(requirement, context_.config.TopologyKey(), context_.config.node_id)) return {};
  }
  if (parameters.directory) {
    if (!CheckDirectoryCapabilities(request.volume_capabilities())) return {};
    KEELSON_ASSIGN_OR_RETURN(bool quotas, HasProjectQuotas(context_.store.directory()));
    if (!quotas && context_.config.directory_quotas) return {};
  }
  if (parameters.logical && !context_.logical.configured()) return {};
  KEELSON_ASSIGN_OR_RETURN(int64_t available, parameters.logical
                                                  ? context_.logical.Available()
                                                  : context_.space.Available(parameters.thick));
  reply.set_available_capacity(available);
  reply.mutable_maximum_volume_size()->set_value(available);
  reply.mutable_minimum_volume_size()->set_value(LeastCapacity(request.volume_capabilities()));
  return {};
}

}  // namespace keelson::csi::local
