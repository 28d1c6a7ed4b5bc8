// Where static pods come from: files, looked at when the kernel says that one has changed, and a URL, asked
// now and then.
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

// Every pod of the source, each time that there is something to tell, first of all once.
using StaticPodsFunction = std::function<void(std::vector<corev1::Pod> pods)>;

struct FileSourceOptions {
  std::string path;  // a directory, or one file
  std::string node_name;
  std::chrono::milliseconds period{std::chrono::seconds(20)};
  RunningPods running = {};
};
// Hidden files are not looked at. A file that cannot be read as a pod is told once and left out; a path that
// is not there holds no pods.
std::vector<corev1::Pod> ReadStaticPodFiles(const FileSourceOptions& options,
                                            std::map<std::string, std::string>& told);
void RunFileSource(const FileSourceOptions& options, const StaticPodsFunction& tell, std::stop_token stop);

struct UrlSourceOptions {
  std::string url, node_name;
  std::map<std::string, std::vector<std::string>> headers;
  std::chrono::milliseconds period{std::chrono::seconds(20)};
  RunningPods running = {};
};
// What cannot be fetched or read leaves the pods as they were.
void RunUrlSource(const UrlSourceOptions& options, const StaticPodsFunction& tell, Clock& clock,
                  std::stop_token stop);

}  // namespace keelson::kubelet
