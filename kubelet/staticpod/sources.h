// Sources of static pods: files, watched by inotify, and a URL, polled.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/staticpod/running_pods.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

// Called with all pods of the source: once at the start, then after each change.
using StaticPodsFunction = std::function<void(std::vector<corev1::Pod> pods)>;

struct FileSourceOptions {
  std::string path;  // a directory, or one file
  std::string node_name;
  std::chrono::milliseconds period{std::chrono::seconds(20)};
  RunningPods running = {};
};
// Ignores hidden files. A file that is no pod is logged once (`told`: what has been logged) and left out. No pods if
// the path does not exist.
std::vector<corev1::Pod> ReadStaticPodFiles(const FileSourceOptions& options,
                                            std::map<std::string, std::string>& told);
void RunFileSource(const FileSourceOptions& options, const StaticPodsFunction& tell, std::stop_token stop);

struct UrlSourceOptions {
  std::string url, node_name;
  std::map<std::string, std::vector<std::string>> headers;
  std::chrono::milliseconds period{std::chrono::seconds(20)};
  RunningPods running = {};
};
// Polls until `stop`. After a failure to fetch or parse, the pods stay as they were.
void RunUrlSource(const UrlSourceOptions& options, const StaticPodsFunction& tell, Clock& clock,
                  std::stop_token stop);

}  // namespace keelson::kubelet
