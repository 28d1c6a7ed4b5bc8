#include "ctl/why/pod/pod_view.h"

#include <algorithm>

#include <boost/json/parse.hpp>

#include "lib/api/meta.h"
#include "lib/base/percent.h"
#include "lib/base/text.h"
#include "lib/http/client/client.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::ctl {

namespace {

constexpr std::chrono::seconds kTimeout{10};
constexpr int kLogLines = 5;

// Notes what does not exist. An object that may not be read counts as there.
template <typename T>
Result<std::optional<T>> Look(const client::RestClient& api, const std::string& ns, const std::string& name,
                              const std::string& kind, std::set<std::string>& missing) {
  Result<T> object = api.Get<T>(ns, name);
  if (object) return std::optional<T>(std::move(*object));
  if (object.error().Is(Code::kNotFound)) {
    missing.insert(kind + " " + name);
  } else if (!object.error().Is(Code::kForbidden)) {
    return object.error();
  }
  return std::optional<T>();
}

std::vector<std::string> ClaimNames(const corev1::Pod& pod) {
  std::vector<std::string> out;
  for (const auto& volume : pod.spec().volumes()) {
    const auto& source = volume.volume_source();
    if (source.has_persistent_volume_claim()) out.push_back(source.persistent_volume_claim().claim_name());
    if (source.has_ephemeral()) out.push_back(pod.metadata().name() + "-" + volume.name());
  }
  return out;
}

Result<> ReadReferences(const client::RestClient& api, PodView& view) {
  const std::string& ns = view.pod.metadata().namespace_();
  for (const std::string& name : ClaimNames(view.pod)) {
    KEELSON_ASSIGN_OR_RETURN(auto claim, Look<corev1::PersistentVolumeClaim>(
                                             api, ns, name, "PersistentVolumeClaim", view.missing));
    if (claim) view.claims.push_back(std::move(*claim));
  }
  return {};
}

// A log that cannot be had is no error: there is none yet, or the node is gone.
void ReadLogs(const client::RestClient& api, PodView& view) {
  const auto& meta = view.pod.metadata();
  auto read = [&](const corev1::ContainerStatus& status) {
    const bool ended = status.state().has_terminated();
    if (!ended && !status.last_state().has_terminated()) return;
    if (!ended && status.state().has_running() && status.ready()) return;
    client::ApiRequest request;
    request.target = "/api/v1/namespaces/" + PercentEncode(meta.namespace_()) + "/pods/" +
                     PercentEncode(meta.name()) + "/log?container=" + PercentEncode(status.name()) +
                     "&tailLines=" + std::to_string(kLogLines) + (ended ? "" : "&previous=true");
    request.accept = "*/*";
    const Result<client::ApiResponse> response = api.transport().Do(request, kTimeout, {});
    if (!response || response->status != 200) return;
    const std::string_view text = TrimRight(response->body);
    if (text.empty()) return;
    for (const std::string_view line : Split(text, '\n')) view.logs[status.name()].emplace_back(line);
  };
  for (const auto& status : view.pod.status().init_container_statuses()) read(status);
  for (const auto& status : view.pod.status().container_statuses()) read(status);
}

Result<boost::json::value> AskScheduler(const std::string& url, const std::string& pod) {
  http::ClientOptions options;
  options.base_url = url;
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<http::Client> client,
                           http::Client::Create(std::move(options)));
  http::ClientRequest request;
  request.target = "/debug/why?pod=" + PercentEncode(pod);
  KEELSON_ASSIGN_OR_RETURN(const http::ClientResponse response, client->Do(request, kTimeout));
  if (response.status != 200) {
    return Error(CodeOf(response.status, ""), std::string(TrimRight(response.body)));
  }
  boost::system::error_code malformed;
  boost::json::value answer = boost::json::parse(response.body, malformed);
  if (malformed || !answer.is_object()) return Error(Code::kInternal, "its answer is not understood");
  return answer;
}

}  // namespace

std::string PodView::Name() const { return pod.metadata().namespace_() + "/" + pod.metadata().name(); }

std::string PodView::Kubectl(const std::string& words) const {
  return "kubectl -n " + pod.metadata().namespace_() + " " + words;
}

const corev1::Event* PodView::Last(const std::vector<std::string>& reasons) const {
  return LastOf(events, reasons);
}

const corev1::Event* PodView::LastOfContainer(const std::string& container,
                                              const std::vector<std::string>& reasons,
                                              const std::string& words) const {
  return LastOf(events, [&](const corev1::Event& event) {
    return event.involved_object().field_path().ends_with("{" + container + "}") &&
           std::find(reasons.begin(), reasons.end(), event.reason()) != reasons.end() &&
           event.message().find(words) != std::string::npos;
  });
}

Result<PodView> ReadPod(const client::RestClient& api, const std::string& ns, const std::string& name,
                        const std::string& scheduler, WallTime now) {
  PodView view;
  view.now = now;
  KEELSON_ASSIGN_OR_RETURN(view.pod, api.Get<corev1::Pod>(ns, name));
  KEELSON_ASSIGN_OR_RETURN(view.events, ReadEventsOf(api, ns, view.pod.metadata().uid()));
  KEELSON_RETURN_IF_ERROR(ReadReferences(api, view));
  ReadLogs(api, view);
  if (const std::string& node = view.pod.spec().node_name(); !node.empty()) {
    Result<corev1::Node> found = api.Get<corev1::Node>("", node);
    if (!found && !found.error().Is(Code::kNotFound)) return found.error();
    if (found) view.node = std::move(*found);
    return view;
  }
  if (k8s::IsTerminal(view.pod)) return view;
  Result<boost::json::value> answer = AskScheduler(scheduler, view.Name());
  if (answer) {
    view.scheduling = std::move(*answer);
  } else {
    view.scheduler_silence = answer.error().Wrap("the scheduler's debug endpoint " + scheduler).message();
  }
  return view;
}

}  // namespace keelson::ctl
