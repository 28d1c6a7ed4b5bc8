// Binds VolumeSnapshots to VolumeSnapshotContents, of any driver, as external-snapshotter's snapshot-controller does: makes
// the content of a snapshot of a claim, binds one that an administrator made, shows the content's state in the snapshot,
// and deletes the content with it. A driver's ContentController does the rest.
//
// One in a cluster is enough; several disturb each other no more than by conflicts. All state is in the API: what holds
// an object back is written before what it holds back for, and removed after it, so a killed controller goes on where it
// was.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "csi/controller/common/controller.h"
#include "csi/controller/model/snapshots.h"
#include "csi/controller/snapshotter/operation_metrics.h"
#include "csi/controller/snapshotter/plan.h"
#include "lib/client/custom/custom_informers.h"

namespace keelson::csi::controller {

// What it works with. All outlive it.
struct SnapshotEnvironment {
  client::RestClient api;
  client::CustomInformers& informers;  // those of its own
  client::EventRecorder& events;
  Clock& clock;
  RetryOptions retry;
  bool distributed =
      false;  // --enable-distributed-snapshotting: contents are labelled with the node of their volume
};

class SnapshotController : public Reconciler {
 public:
  explicit SnapshotController(const SnapshotEnvironment& environment);
  // Key: NAMESPACE/NAME of a snapshot; ":NAMESPACE/NAME" of a claim whose snapshot is gone.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Result<Requeue> Live(const Snapshot& snapshot, std::stop_token stop);
  Result<Requeue> Delete(const Snapshot& snapshot, std::stop_token stop);
  Result<> CheckReady(const Snapshot& snapshot, std::stop_token stop);
  Result<> BindGiven(const Snapshot& snapshot, std::stop_token stop);
  Result<> BindMade(const Snapshot& snapshot, std::stop_token stop);

  // Finalizers, and the default class where none is named. Returns the snapshot as it is then.
  Result<Snapshot> Prepare(const Snapshot& snapshot, std::stop_token stop);
  Result<std::string> FindDefaultClass(const Snapshot& snapshot, std::stop_token stop);
  Result<SnapshotContent> MakeContent(const Snapshot& snapshot, std::stop_token stop);
  Result<SnapshotContent> Reserve(const Snapshot& snapshot, const SnapshotContent& content,
                                  std::stop_token stop);
  Result<> Keep(const SnapshotContent& content, std::stop_token stop);
  Result<> ShowStatus(const Snapshot& snapshot, const SnapshotContent& content, std::stop_token stop);
  // The error in the snapshot's status, and an event if it is another one than before.
  Result<> Report(const Snapshot& snapshot, const SnapshotProblem& problem, bool unready,
                  std::stop_token stop);

  struct Source {
    Claim claim;
    Volume volume;
  };
  Result<Source> FindSource(const Snapshot& snapshot, std::stop_token stop);
  Result<SnapshotClass> FindClass(const std::string& name) const;
  Result<std::string> NodeOf(const Volume& volume, std::stop_token stop);
  // Reads the API where the informer has none. nullopt: there is none.
  Result<std::optional<SnapshotContent>> FindContent(const std::string& name, std::stop_token stop);
  Result<bool> IsBeingRestored(const Snapshot& snapshot, std::stop_token stop);

  // Claims have a finalizer while snapshots of them are not ready.
  Result<> ProtectClaim(const Claim& claim, std::stop_token stop);
  // Unless a snapshot other than `except` (a UID) needs it.
  Result<> FreeClaim(const std::string& ns, const std::string& name, const std::string& except,
                     std::stop_token stop);

  client::CustomClient Custom(std::stop_token stop) const {
    return client::CustomClient(environment_.api).With(stop);
  }

  const SnapshotEnvironment environment_;
  client::Informer<CustomObject>& snapshots_;
  client::Informer<CustomObject>& contents_;
  client::Informer<CustomObject>& classes_;
  OperationMetrics times_;
  Mutex claims_;  // held while a claim's finalizer is decided on and changed
};

}  // namespace keelson::csi::controller
