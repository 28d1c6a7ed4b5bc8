// The conformance test of RuntimeService, for the fake and real runtimes. Include it in a test and call it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

#include "kubelet/cri/runtime.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::cri {

// Collects the runtime's events while it lives, if there are any.
class EventLog {
 public:
  explicit EventLog(RuntimeService& runtime)
      : thread_([this, &runtime](std::stop_token stop) {
          auto ended = runtime.WatchEvents(
              [this](const ContainerEvent& event) {
                MutexLock lock(mutex_);
                events_.push_back(event);
                changed_.notify_all();
              },
              stop);
          MutexLock lock(mutex_);
          supported_ = ended || !ended.error().Is(Code::kUnimplemented);
          ended_ = true;
          changed_.notify_all();
        }) {}
  // Waits for the event; false after ten seconds. Always true for runtimes without events.
  bool Await(const std::string& id, ContainerEvent::Type type) {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    MutexLock lock(mutex_);
    while (std::chrono::steady_clock::now() < until) {
      if (ended_ && !supported_) return true;
      for (const auto& event : events_) {
        if (event.container_id == id && event.type == type) {
          return event.pod_uid == "uid-conformance" || event.pod_uid.empty();
        }
      }
      changed_.wait_for(mutex_, std::chrono::milliseconds(100));
    }
    return false;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<ContainerEvent> events_ KEELSON_GUARDED_BY(mutex_);
  bool ended_ KEELSON_GUARDED_BY(mutex_) = false, supported_ KEELSON_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

// `image` is present and its command runs until it is stopped; `make` fills in what the runtime under test
// needs of a sandbox (log directory, cgroup parent); `listening` returns when the stream of events is open.
inline void CheckRuntimeConformance(RuntimeService& runtime, ImageService& images, const std::string& image,
                                    const std::vector<std::string>& command, SandboxConfig sandbox_config,
                                    const std::function<void()>& listening = {}) {
  ASSERT_TRUE(runtime.GetVersion());
  ASSERT_TRUE(runtime.UpdateRuntimeConfig("10.1.0.0/24"));
  EventLog events(runtime);
  if (listening) listening();
  auto status = images.ImageStatus(image);
  ASSERT_TRUE(status && *status);
  auto absent = images.ImageStatus("docker.io/library/absent:0");
  ASSERT_TRUE(absent);
  EXPECT_FALSE(*absent);

  sandbox_config.metadata = {"conformance", "uid-conformance", "default", 0};
  sandbox_config.labels["io.kubernetes.pod.uid"] = "uid-conformance";
  sandbox_config.namespaces.network = NamespaceMode::kNode;
  auto sandbox = runtime.RunPodSandbox(sandbox_config, "");
  ASSERT_TRUE(sandbox) << sandbox.error().message();
  auto sandbox_status = runtime.PodSandboxStatus(*sandbox);
  ASSERT_TRUE(sandbox_status);
  EXPECT_EQ(sandbox_status->state, SandboxState::kReady);
  EXPECT_EQ(sandbox_status->network, NamespaceMode::kNode);
  EXPECT_EQ(sandbox_status->metadata.uid, "uid-conformance");

  ContainerConfig config;
  config.name = "main";
  config.image = (*status)->id;
  config.user_specified_image = image;
  config.command = command;
  config.log_path = "main.log";
  config.labels["io.kubernetes.pod.uid"] = "uid-conformance";
  config.annotations["note"] = "kept";
  config.resources.cpu_shares = 100;
  auto id = runtime.CreateContainer(*sandbox, config, sandbox_config);
  ASSERT_TRUE(id) << id.error().message();
  EXPECT_EQ(runtime.GetContainerStatus(*id)->state, ContainerState::kCreated);
  ASSERT_TRUE(runtime.StartContainer(*id));
  EXPECT_FALSE(runtime.StartContainer(*id)) << "only once";
  auto running = runtime.GetContainerStatus(*id);
  ASSERT_TRUE(running);
  EXPECT_EQ(running->state, ContainerState::kRunning);
  EXPECT_GT(running->started_at, 0);
  EXPECT_EQ(running->annotations.at("note"), "kept");
  EXPECT_TRUE(running->stop_signal.empty() || running->stop_signal == "SIGTERM") << running->stop_signal;
  EXPECT_TRUE(events.Await(*id, ContainerEvent::Type::kStarted));
  LinuxResources resources;
  resources.cpu_shares = 200;
  EXPECT_TRUE(runtime.UpdateContainerResources(*id, resources));
  EXPECT_EQ(runtime.RunPodSandbox(sandbox_config, "no-such-handler").has_value(), false);

  Filter filter;
  filter.labels["io.kubernetes.pod.uid"] = "uid-conformance";
  EXPECT_EQ(runtime.ListContainers(filter)->size(), 1u);
  EXPECT_EQ(runtime.ListContainers(filter)->front().sandbox_id, *sandbox);
  filter.labels["io.kubernetes.pod.uid"] = "another";
  EXPECT_EQ(runtime.ListContainers(filter)->size(), 0u);

  ASSERT_TRUE(runtime.StopContainer(*id, std::chrono::seconds(0)));
  auto exited = runtime.GetContainerStatus(*id);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->state, ContainerState::kExited);
  EXPECT_NE(exited->exit_code, 0);
  EXPECT_TRUE(events.Await(*id, ContainerEvent::Type::kStopped));
  EXPECT_FALSE(runtime.UpdateContainerResources(*id + "x", resources)) << "unknown";
  EXPECT_GE(exited->finished_at, exited->started_at);
  EXPECT_TRUE(runtime.StopContainer(*id, std::chrono::seconds(0))) << "stopping again is fine";
  EXPECT_TRUE(runtime.RemoveContainer(*id));
  EXPECT_TRUE(runtime.RemoveContainer(*id)) << "removing again is fine";
  EXPECT_EQ(runtime.GetContainerStatus(*id).error().code(), Code::kNotFound);

  ASSERT_TRUE(runtime.StopPodSandbox(*sandbox));
  EXPECT_EQ(runtime.PodSandboxStatus(*sandbox)->state, SandboxState::kNotReady);
  ASSERT_TRUE(runtime.RemovePodSandbox(*sandbox));
  EXPECT_TRUE(runtime.RemovePodSandbox(*sandbox)) << "removing again is fine";
  EXPECT_EQ(runtime.PodSandboxStatus(*sandbox).error().code(), Code::kNotFound);
}

}  // namespace keelson::kubelet::cri
