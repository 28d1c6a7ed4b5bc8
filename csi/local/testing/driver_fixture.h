// For tests: the built driver behind its socket, with a data directory and paths of the test's own. TearDown() removes
// every mount and loop device that belongs to them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "csi/local/model/wire.h"
#include "lib/event/process.h"
#include "lib/linux/loop.h"
#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::csi::local {

inline constexpr int64_t kMi = int64_t{1} << 20;

template <typename Reply>
struct Answer {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  Reply reply;
  bool ok() const { return code == grpc::StatusCode::OK; }
};

class DriverFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts the driver, and waits until it answers.
  void Start(const std::vector<std::string>& flags = {});
  void Stop();  // SIGTERM
  void Kill();  // SIGKILL
  std::vector<std::string> Command(const std::vector<std::string>& flags = {}) const;
  void AwaitReady();
  std::string Log() const;

  // Calls one method:  Call(&v1::Node::Stub::NodeGetInfo, request)
  template <typename Request, typename Reply>
  Answer<Reply> Call(grpc::Status (v1::Identity::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request) {
    return Ask(*identity_, method, request);
  }
  template <typename Request, typename Reply>
  Answer<Reply> Call(grpc::Status (v1::Controller::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                  Reply*),
                     const Request& request) {
    return Ask(*controller_, method, request);
  }
  template <typename Request, typename Reply>
  Answer<Reply> Call(grpc::Status (v1::GroupController::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                       Reply*),
                     const Request& request) {
    return Ask(*group_controller_, method, request);
  }
  template <typename Request, typename Reply>
  Answer<Reply> Call(grpc::Status (v1::Node::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request) {
    return Ask(*node_, method, request);
  }

  static v1::VolumeCapability Mount(const std::string& type = "");
  static v1::VolumeCapability Block();
  static v1::CreateVolumeRequest VolumeRequest(const std::string& name, int64_t bytes,
                                               const v1::VolumeCapability& capability = Mount());
  v1::NodeStageVolumeRequest StageRequest(const std::string& id,
                                          const v1::VolumeCapability& capability = Mount()) const;
  v1::NodePublishVolumeRequest PublishRequest(const std::string& id,
                                              const v1::VolumeCapability& capability = Mount(),
                                              const std::string& target = "target") const;

  // Each expects success.
  std::string CreateVolume(const std::string& name, int64_t bytes,
                           const v1::VolumeCapability& capability = Mount());
  std::string CreateSnapshot(const std::string& name, const std::string& volume);
  void Stage(const std::string& id, const v1::VolumeCapability& capability = Mount());
  void Publish(const std::string& id, const v1::VolumeCapability& capability = Mount(),
               const std::string& target = "target");
  void Unpublish(const std::string& id, const std::string& target = "target");
  void Unstage(const std::string& id);
  void DeleteVolume(const std::string& id);
  void DeleteSnapshot(const std::string& id);

  std::string Staging(const std::string& id) const;  // an existing directory for this volume
  std::string Target(const std::string& name) const { return dir_ + "/pods/" + name; }
  std::string Image(const std::string& id) const { return dir_ + "/data/volumes/" + id + ".img"; }
  // What the kernel has of this test.
  std::vector<std::string> Mounts() const;
  std::vector<linux::LoopDevice> Loops() const;
  std::vector<std::string> Files(const std::string& folder) const;  // of the data directory

  std::string dir_;
  std::optional<event::Process> driver_;

 private:
  template <typename Stub, typename Request, typename Reply>
  static Answer<Reply> Ask(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                           const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
    Answer<Reply> answer;
    const grpc::Status status = (stub.*method)(&context, request, &answer.reply);
    answer.code = status.error_code();
    answer.message = status.error_message();
    return answer;
  }
  void Connect();

  std::unique_ptr<v1::Identity::Stub> identity_;
  std::unique_ptr<v1::Controller::Stub> controller_;
  std::unique_ptr<v1::GroupController::Stub> group_controller_;
  std::unique_ptr<v1::Node::Stub> node_;
};

}  // namespace keelson::csi::local
