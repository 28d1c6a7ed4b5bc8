// For tests: a CSI driver in this process that serves the Identity and Node services on a socket. It keeps state as a
// real one does, on disk as well: published volumes are directories (devices: files) that it makes and removes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace keelson::kubelet::csi {

class FakeDriver {  // thread safe
 public:
  explicit FakeDriver(const std::string& socket);
  ~FakeDriver();

  // Serves the registration service on that socket too, as a node-driver-registrar beside the driver does.
  void RegisterAt(const std::string& registration_socket);

  // Names of CSI's node capabilities: "STAGE_UNSTAGE_VOLUME", ...
  void SetCapabilities(const std::set<std::string>& names);
  void SetInfo(const std::string& node_id, int64_t max_volumes,
               const std::map<std::string, std::string>& topology);
  // Bytes and inodes, each total, available, used. `abnormal`: what VOLUME_CONDITION tells; empty: healthy.
  void SetUsage(const std::vector<int64_t>& bytes, const std::vector<int64_t>& inodes,
                const std::string& abnormal = "");

  // The next `times` calls of the method end with this gRPC status. `after`: once their work is done.
  void Fail(const std::string& method, int code, const std::string& message, int times = 1,
            bool after = false);
  // Called within each call of a method that changes something, when its work is done, before its answer.
  void OnDone(std::function<void(const std::string& method)> hook);

  // Since the last call of Calls(): "stage vol-1", "publish vol-1 pod-dir", in order; without queries.
  std::vector<std::string> Calls();
  // The last request of the method in protobuf's text form, one line.
  std::string LastRequest(const std::string& method) const;
  // What no kubelet may do: to unstage what is published, to publish what is not staged, ...
  std::vector<std::string> Violations() const;
  std::set<std::string> Staged() const;     // staging paths
  std::set<std::string> Published() const;  // target paths

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::csi
