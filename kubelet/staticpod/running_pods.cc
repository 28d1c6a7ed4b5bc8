#include "kubelet/staticpod/running_pods.h"

#include "kubelet/staticpod/parse.h"
#include "lib/api/codec/text_forms.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

std::string ValueOf(const cri::Labels& labels, std::string_view name) {
  auto it = labels.find(std::string(name));
  return it == labels.end() ? "" : it->second;
}

// Of an annotation; long ago where it says nothing.
WallTime TimeOf(const std::string& text) {
  auto time = api::ParseTime(text, false);
  return time ? WallTimeOf(time->seconds, time->nanos) : WallTime::min();
}

}  // namespace

void RunningPods::Add(const std::string& key, std::string uid, WallTime seen) {
  pods_.emplace(key, Pod{std::move(uid), seen});
}

std::optional<std::string> RunningPods::Find(const std::string& key, const std::vector<std::string>& uids,
                                             WallTime manifest_changed) const {
  const auto [begin, end] = pods_.equal_range(key);
  for (const std::string& uid : uids) {
    for (auto it = begin; it != end; ++it) {
      if (it->second.uid == uid) return uid;
    }
  }
  for (auto it = begin; it != end; ++it) {
    if (it->second.seen > manifest_changed) return it->second.uid;
  }
  return std::nullopt;
}

Result<RunningPods> FindRunningPods(cri::RuntimeService& runtime, const std::string& source,
                                    std::stop_token stop) {
  RunningPods out;
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::Sandbox> sandboxes, runtime.ListPodSandbox({}, stop));
  for (const cri::Sandbox& sandbox : sandboxes) {
    if (sandbox.state != cri::SandboxState::kReady) continue;
    auto status = runtime.PodSandboxStatus(sandbox.id, stop);
    if (!status && status.error().Is(Code::kNotFound)) continue;  // removed since the list
    if (!status) return status.error();
    if (ValueOf(status->annotations, k8s::kConfigSourceAnnotation) != source) continue;
    out.Add(sandbox.metadata.ns + "/" + sandbox.metadata.name, sandbox.metadata.uid,
            TimeOf(ValueOf(status->annotations, kConfigSeenAnnotation)));
  }
  return out;
}

}  // namespace keelson::kubelet
