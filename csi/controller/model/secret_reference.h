// Secrets that a class names for the calls of its driver: csi.storage.k8s.io/provisioner-secret-name and its like, as
// external-provisioner resolves them. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "csi/controller/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

enum class SecretUse {
  kProvisioner,
  kControllerPublish,
  kNodeStage,
  kNodePublish,
  kControllerExpand,
  kNodeExpand,
};

// What templates of names may mention. Owners of claims decide about name and annotations, so templates of namespaces
// know neither.
struct SecretSubject {
  std::string volume_name;
  std::string claim_namespace, claim_name;
  std::map<std::string, std::string> claim_annotations;  // empty for SecretUse::kProvisioner
};

// The secret for this use, else the class's default secret; nullopt: none. ${pv.name}, ${pvc.namespace}, ${pvc.name}
// and ${pvc.annotations['KEY']} are replaced. kInvalid, in external-provisioner's words: half of a reference, an
// unknown token, a result that is no name.
Result<std::optional<corev1::SecretReference>> ResolveSecret(SecretUse use, const Strings& parameters,
                                                             const SecretSubject& subject);

enum class SnapshotSecretUse { kSnapshotter, kSnapshotterList };

struct SnapshotSecretSubject {
  std::string content_name;
  // Of the VolumeSnapshot; empty: templates that mention it are errors.
  std::string snapshot_namespace, snapshot_name;
};

// The same for the parameters of a VolumeSnapshotClass, as external-snapshotter resolves them: without a default secret,
// with ${volumesnapshotcontent.name}, ${volumesnapshot.namespace} and, in names, ${volumesnapshot.name}.
Result<std::optional<corev1::SecretReference>> ResolveSnapshotSecret(SnapshotSecretUse use,
                                                                     const Strings& parameters,
                                                                     const SnapshotSecretSubject& subject);
// The parameters for the driver: without the prefix csi.storage.k8s.io/. kInvalid: an unknown key with the prefix.
Result<Strings> SnapshotParameters(const Strings& parameters);

// Whether the parameter is one of those that name secrets with the prefix csi.storage.k8s.io/.
bool IsSecretParameter(const std::string& key);

}  // namespace keelson::csi::controller
