#include "ctl/cri/pods.h"

#include <algorithm>
#include <boost/json.hpp>

#include "ctl/cri/document.h"
#include "ctl/cri/text.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

std::string StateText(cri::PodSandboxState state) {
  return state == cri::SANDBOX_READY ? "Ready" : "NotReady";
}
std::string HandlerText(const cri::PodSandbox& pod) {
  return pod.runtime_handler().empty() ? "(default)" : pod.runtime_handler();
}

std::string MetadataLines(const cri::PodSandboxMetadata& metadata) {
  std::string out;
  if (!metadata.name().empty()) out += "Name: " + metadata.name() + "\n";
  if (!metadata.uid().empty()) out += "UID: " + metadata.uid() + "\n";
  if (!metadata.namespace_().empty()) out += "Namespace: " + metadata.namespace_() + "\n";
  return out;
}

}  // namespace

std::string InfoText(const google::protobuf::Map<std::string, std::string>& info) {
  std::string out = "map[";
  for (const auto& [key, value] : Items(info)) {
    if (out.size() > 4) out += " ";
    out.append(key).append(":") += value;
  }
  return out + "]";
}

Result<cri::ListPodSandboxRequest> PodRequest(const CriFilter& filter) {
  cri::ListPodSandboxRequest request;
  request.mutable_filter()->set_id(filter.id);
  if (!filter.state.empty()) {
    const std::string state = Lower(filter.state);
    if (state != "ready" && state != "notready") {
      return Error(Code::kInvalid, "--state should be ready or notready");
    }
    request.mutable_filter()->mutable_state()->set_state(state == "ready" ? cri::SANDBOX_READY
                                                                          : cri::SANDBOX_NOTREADY);
  }
  KEELSON_ASSIGN_OR_RETURN(const auto labels, ParseLabels(filter.labels));
  request.mutable_filter()->mutable_label_selector()->insert(labels.begin(), labels.end());
  return request;
}

Result<std::vector<cri::PodSandbox>> ChosenPods(const cri::ListPodSandboxResponse& all,
                                                const CriFilter& filter) {
  KEELSON_ASSIGN_OR_RETURN(const NamePattern name, NamePattern::Parse(filter.name));
  KEELSON_ASSIGN_OR_RETURN(const NamePattern name_space, NamePattern::Parse(filter.name_space));
  std::vector<cri::PodSandbox> out;
  for (const cri::PodSandbox& pod : all.items()) {
    if (pod.has_metadata() && name.Matches(pod.metadata().name()) &&
        name_space.Matches(pod.metadata().namespace_())) {
      out.push_back(pod);
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.created_at() > b.created_at(); });
  out.resize(ShownCount(out.size(), filter));
  return out;
}

Result<std::vector<cri::PodSandbox>> ListPods(CriClient& client, const CriFilter& filter) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ListPodSandboxRequest request, PodRequest(filter));
  const auto reply = client.Ask(&RuntimeStub::ListPodSandbox, request);
  if (!reply) return reply.error().Wrap("list pod sandboxes");
  return ChosenPods(*reply, filter);
}

std::string PodTable(const std::vector<cri::PodSandbox>& pods, bool full_ids, WallTime now) {
  std::vector<std::vector<std::string>> rows = {
      {"POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME"}};
  for (const cri::PodSandbox& pod : pods) {
    rows.push_back({full_ids ? pod.id() : TruncatedId(pod.id()), Ago(pod.created_at(), now),
                    StateText(pod.state()), pod.metadata().name(), pod.metadata().namespace_(),
                    std::to_string(pod.metadata().attempt()), HandlerText(pod)});
  }
  return CriTable(rows);
}

std::string PodParagraphs(const std::vector<cri::PodSandbox>& pods) {
  std::string out;
  for (const cri::PodSandbox& pod : pods) {
    out += "ID: " + pod.id() + "\n" + MetadataLines(pod.metadata());
    if (pod.metadata().attempt() != 0) out += "Attempt: " + std::to_string(pod.metadata().attempt()) + "\n";
    out += "Status: " + StateText(pod.state()) + "\nCreated: " + LocalTime(pod.created_at()) + "\n" +
           KeyValueLines("Labels", Items(pod.labels())) +
           KeyValueLines("Annotations", Items(pod.annotations())) + "Runtime: " + HandlerText(pod) + "\n\n";
  }
  return out;
}

std::string PodStatusText(const cri::PodSandboxStatusResponse& reply, bool verbose) {
  const cri::PodSandboxStatus& pod = reply.status();
  std::string out = "ID: " + pod.id() + "\n";
  if (pod.has_metadata()) {
    out += MetadataLines(pod.metadata()) + "Attempt: " + std::to_string(pod.metadata().attempt()) + "\n";
  }
  out += "Status: " + cri::PodSandboxState_Name(pod.state()) + "\nCreated: " + LocalTime(pod.created_at()) +
         "\n";
  if (pod.has_network()) {
    out += "IP Addresses: " + pod.network().ip() + "\n";
    for (const cri::PodIP& ip : pod.network().additional_ips()) out += "Additional IP: " + ip.ip() + "\n";
  }
  out +=
      KeyValueLines("Labels", Items(pod.labels())) + KeyValueLines("Annotations", Items(pod.annotations()));
  if (verbose) out += "Info: " + InfoText(reply.info()) + "\n";
  return out;
}

Result<boost::json::value> PodStatusDocument(const cri::PodSandboxStatusResponse& reply) {
  KEELSON_ASSIGN_OR_RETURN(boost::json::value status, MessageDocument(reply.status()));
  status.as_object()["createdAt"] = LocalTime(reply.status().created_at());
  return StatusDocument(std::move(status), Items(reply.info()));
}

}  // namespace keelson::ctl
