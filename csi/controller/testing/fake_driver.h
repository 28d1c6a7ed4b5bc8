// A scripted CSI driver behind a real socket, for tests: volumes in memory, failures before or after a call's work.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "csi/controller/model/wire.h"

namespace keelson::csi::controller {

class FakeDriver {  // thread safe
 public:
  static constexpr char kName[] = "disk.example.com";

  explicit FakeDriver(const std::string& socket);
  ~FakeDriver();

  // As from a driver that starts anew: what Identity and Controller tell. Names of ControllerServiceCapability.RPC.
  void SetCapabilities(const std::set<std::string>& capabilities, bool topology = false);
  void SetName(const std::string& name);
  void SetNodeTopology(const std::map<std::string, std::string>& segments);
  // The node's EXPAND_VOLUME. Without, the socket has no NodeGetCapabilities.
  void SetNodeExpand(bool expand);
  // What GetCapacity answers for the topology {zone}.
  void SetCapacity(const std::string& zone, int64_t bytes);
  // Whether Probe says ready.
  void SetReady(bool ready);
  // Stops to listen, and listens again; volumes stay.
  void Stop();
  void Start();

  // The next `times` calls of the method end with this gRPC status. `after`: once their work is done.
  void Fail(const std::string& method, int code, const std::string& message, int times = 1,
            bool after = false);
  // Called within each call that changes something, when its work is done, before its answer.
  void OnDone(std::function<void(const std::string& method)> hook);
  // Changes answers of CreateVolume, ControllerPublishVolume and ControllerExpandVolume before they are sent.
  void OnAnswer(std::function<void(google::protobuf::Message& reply)> hook);

  // Since the last call of Calls(): "CreateVolume pvc-1", in order; without queries.
  std::vector<std::string> Calls();
  int Count(const std::string& method) const;  // calls of the method so far
  // The last request of the method in protobuf's text form, one line.
  std::string LastRequest(const std::string& method) const;
  v1::CreateVolumeRequest LastCreate() const;

  std::map<std::string, int64_t> Volumes() const;  // id and capacity
  std::set<std::string> Published() const;         // "id@node"
  void AddVolume(const std::string& id, int64_t bytes);

  // Snapshots by id, with the volume that each is of.
  std::map<std::string, std::string> Snapshots() const;
  void AddSnapshot(const std::string& id, int64_t bytes);
  // Whether snapshots are ready to use. At first they are.
  void SetSnapshotsReady(bool ready);
  // The condition of a volume; empty: fine.
  void SetAbnormal(const std::string& volume_id, const std::string& message);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::csi::controller
