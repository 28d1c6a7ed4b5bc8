#include "ctl/cri/containers.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/cri/document.h"
#include "ctl/cri/pods.h"
#include "ctl/cri/text.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr char kPodNameLabel[] = "io.kubernetes.pod.name",
               kPodNamespaceLabel[] = "io.kubernetes.pod.namespace";

std::string LabelOr(const cri::Container& container, const char* label) {
  const auto found = container.labels().find(label);
  return found == container.labels().end() ? "unknown" : found->second;
}

std::string StateText(cri::ContainerState state) {
  switch (state) {
    case cri::CONTAINER_CREATED:
      return "Created";
    case cri::CONTAINER_RUNNING:
      return "Running";
    case cri::CONTAINER_EXITED:
      return "Exited";
    default:
      return "Unknown";
  }
}

Result<cri::ContainerState> ParseState(const std::string& word) {
  const std::string state = Lower(word);
  if (state == "created") return cri::CONTAINER_CREATED;
  if (state == "running") return cri::CONTAINER_RUNNING;
  if (state == "exited") return cri::CONTAINER_EXITED;
  if (state == "unknown") return cri::CONTAINER_UNKNOWN;
  return Error(Code::kInvalid, "--state should be one of created, running, exited or unknown");
}

// Empty: the runtime has no such image.
Result<std::string> ImageId(CriClient& client, const std::string& image) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  const auto reply = client.Ask(&ImageStub::ImageStatus, request);
  if (!reply) return reply.error().Wrap("check image match");
  return reply->image().id();
}

}  // namespace

Result<cri::ListContainersRequest> ContainerRequest(const CriFilter& filter) {
  cri::ListContainersRequest request;
  request.mutable_filter()->set_id(filter.id);
  request.mutable_filter()->set_pod_sandbox_id(filter.pod);
  cri::ContainerState state = cri::CONTAINER_RUNNING;
  if (!filter.state.empty()) {
    KEELSON_ASSIGN_OR_RETURN(state, ParseState(filter.state));
  }
  const bool any_state = (filter.all && filter.state.empty()) || filter.latest || filter.last > 0;
  if (!any_state) request.mutable_filter()->mutable_state()->set_state(state);
  KEELSON_ASSIGN_OR_RETURN(const auto labels, ParseLabels(filter.labels));
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  return request;
}

Result<std::vector<cri::Container>> ChosenContainers(std::vector<cri::Container> all,
                                                     const CriFilter& filter) {
  KEELSON_ASSIGN_OR_RETURN(const NamePattern name, NamePattern::Parse(filter.name));
  KEELSON_ASSIGN_OR_RETURN(const NamePattern name_space, NamePattern::Parse(filter.name_space));
  std::erase_if(all, [&](const cri::Container& container) {
    return !container.has_metadata() || !name.Matches(container.metadata().name()) ||
           !name_space.Matches(LabelOr(container, kPodNamespaceLabel));
  });
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.created_at() > b.created_at(); });
  all.resize(ShownCount(all.size(), filter));
  return all;
}

Result<std::vector<cri::Container>> ListContainers(CriClient& client, const CriFilter& filter) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ListContainersRequest request, ContainerRequest(filter));
  const auto reply = client.Ask(&RuntimeStub::ListContainers, request);
  if (!reply) return reply.error().Wrap("list containers");
  std::vector<cri::Container> found;
  std::string wanted;
  if (!filter.image.empty()) {
    KEELSON_ASSIGN_OR_RETURN(wanted, ImageId(client, filter.image));
  }
  for (const cri::Container& container : reply->containers()) {
    if (!filter.image.empty()) {
      KEELSON_ASSIGN_OR_RETURN(const std::string id, ImageId(client, container.image().image()));
      if (wanted.empty() || id != wanted) continue;
    }
    found.push_back(container);
  }
  return ChosenContainers(std::move(found), filter);
}

Result<cri::ContainerStatusResponse> GetContainerStatus(CriClient& client, const std::string& id,
                                                        bool verbose) {
  cri::ContainerStatusRequest request;
  request.set_container_id(id);
  request.set_verbose(verbose);
  return client.Ask(&RuntimeStub::ContainerStatus, request);
}

std::string ContainerTable(const std::vector<cri::Container>& containers, bool full_ids, WallTime now) {
  std::vector<std::vector<std::string>> rows = {
      {"CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE"}};
  for (const cri::Container& one : containers) {
    const std::string &id = one.id(), &pod = one.pod_sandbox_id(), &image = one.image().image();
    rows.push_back({full_ids ? id : TruncatedId(id), full_ids ? image : TruncatedImage(image),
                    Ago(one.created_at(), now), StateText(one.state()), one.metadata().name(),
                    std::to_string(one.metadata().attempt()), full_ids ? pod : TruncatedId(pod),
                    LabelOr(one, kPodNameLabel), LabelOr(one, kPodNamespaceLabel)});
  }
  return CriTable(rows);
}

std::string ContainerParagraphs(const std::vector<cri::Container>& containers, WallTime now) {
  std::string out;
  for (const cri::Container& one : containers) {
    out += "ID: " + one.id() + "\nPodID: " + one.pod_sandbox_id() +
           "\nNamespace: " + LabelOr(one, kPodNamespaceLabel) + "\n";
    if (!one.metadata().name().empty()) out += "Name: " + one.metadata().name() + "\n";
    out +=
        "Attempt: " + std::to_string(one.metadata().attempt()) + "\nState: " + StateText(one.state()) + "\n";
    if (one.has_image()) out += "Image: " + one.image().image() + "\n";
    out += "Created: " + Ago(one.created_at(), now) + "\n" + KeyValueLines("Labels", Items(one.labels())) +
           KeyValueLines("Annotations", Items(one.annotations())) + "\n";
  }
  return out;
}

std::string ContainerStatusText(const cri::ContainerStatusResponse& reply, bool verbose, WallTime now) {
  const cri::ContainerStatus& one = reply.status();
  std::string out = "ID: " + one.id() + "\n";
  if (!one.metadata().name().empty()) out += "Name: " + one.metadata().name() + "\n";
  if (one.metadata().attempt() != 0) out += "Attempt: " + std::to_string(one.metadata().attempt()) + "\n";
  out +=
      "State: " + cri::ContainerState_Name(one.state()) + "\nCreated: " + Ago(one.created_at(), now) + "\n";
  if (one.state() != cri::CONTAINER_CREATED) out += "Started: " + Ago(one.started_at(), now) + "\n";
  if (one.state() == cri::CONTAINER_EXITED) {
    if (one.finished_at() > 0) out += "Finished: " + Ago(one.finished_at(), now) + "\n";
    out += "Exit Code: " + std::to_string(one.exit_code()) + "\n";
  }
  out +=
      KeyValueLines("Labels", Items(one.labels())) + KeyValueLines("Annotations", Items(one.annotations()));
  if (verbose) out += "Info: " + InfoText(reply.info()) + "\n";
  return out;
}

Result<boost::json::value> ContainerStatusDocument(const cri::ContainerStatusResponse& reply) {
  const cri::ContainerStatus& one = reply.status();
  KEELSON_ASSIGN_OR_RETURN(boost::json::value status, MessageDocument(one));
  const bool started = one.state() != cri::CONTAINER_CREATED;
  const bool finished = one.state() == cri::CONTAINER_EXITED ||
                        (one.state() == cri::CONTAINER_UNKNOWN && one.finished_at() > 0);
  status.as_object()["createdAt"] = LocalTime(one.created_at());
  status.as_object()["startedAt"] = started ? LocalTime(one.started_at()) : kNoTime;
  status.as_object()["finishedAt"] = finished ? LocalTime(one.finished_at()) : kNoTime;
  return StatusDocument(std::move(status), Items(reply.info()));
}

}  // namespace keelson::ctl
