// Takes and deletes the snapshots of one driver, as external-snapshotter's sidecar does, for VolumeSnapshotContents that a
// snapshot controller or an administrator has made.
//
// The annotation being-created is written before CreateSnapshot and removed when it is known how the call has ended.
// Meanwhile the content stays, also when it is deleted, so that no snapshot is lost in the driver. The driver's name for
// the snapshot is made of the VolumeSnapshot's UID: a killed controller asks for the same one again.
#pragma once

#include <optional>
#include <string>

#include "csi/controller/common/controller.h"
#include "csi/controller/model/snapshots.h"
#include "csi/controller/snapshotter/plan.h"
#include "lib/client/custom/custom_informers.h"

namespace keelson::csi::controller {

struct SnapshotterOptions {
  std::string name_prefix = "snapshot";  // --snapshot-name-prefix
  int name_uuid_length = -1;             // --snapshot-name-uuid-length; -1: the whole UID with its dashes
  bool extra_create_metadata = false;    // --extra-create-metadata
};

class ContentController : public Controller {
 public:
  // With environment.node only contents with the label of that node.
  ContentController(const Environment& environment, client::CustomInformers& informers,
                    SnapshotterOptions options);
  // Key: the name of a content.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<Requeue> Create(const SnapshotContent& content, std::stop_token stop);
  // nullopt: there is nothing to do any more.
  Result<std::optional<TakenSnapshot>> Take(const SnapshotContent& content, std::stop_token stop);
  Result<v1::CreateSnapshotRequest> Request(const SnapshotContent& content, std::stop_token stop);
  Result<Requeue> Check(const SnapshotContent& content, std::stop_token stop);
  Result<TakenSnapshot> Look(const SnapshotContent& content, std::stop_token stop);
  Result<> Delete(const SnapshotContent& content, std::stop_token stop);
  Result<> Release(const SnapshotContent& content, std::stop_token stop);

  Result<Requeue> Save(const SnapshotContent& content, const TakenSnapshot& taken, std::stop_token stop);
  void SaveError(const SnapshotContent& content, const char* reason, const std::string& message,
                 std::stop_token stop);
  // Whether CreateSnapshot is to be called: the informer may be behind.
  Result<bool> MarkBeingCreated(const SnapshotContent& content, std::stop_token stop);
  Result<> UnmarkBeingCreated(const SnapshotContent& content, std::stop_token stop);
  Result<SnapshotClass> FindClass(const std::string& name) const;
  Result<Strings> Secrets(const SnapshotContent& content, std::stop_token stop);
  // The secret of the class for ListSnapshots.
  Result<Strings> ListSecrets(const SnapshotContent& content, std::stop_token stop);

  client::CustomClient Custom(std::stop_token stop) const {
    return client::CustomClient(environment().api).With(stop);
  }

  const SnapshotterOptions options_;
  client::Informer<CustomObject>& contents_;
  client::Informer<CustomObject>& classes_;
};

}  // namespace keelson::csi::controller
