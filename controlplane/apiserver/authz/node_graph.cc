#include "controlplane/apiserver/authz/node_graph.h"

#include <set>

#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::apiserver {
namespace {

constexpr int kDepth = 3;  // secret -> volume -> claim

std::string Id(std::string_view resource, std::string_view ns, std::string_view name) {
  std::string out(resource);
  ((out += '/') += ns) += '/';
  return out += name;
}

std::string IdOfKey(std::string_view resource, std::string_view key) {
  auto slash = key.find('/');
  if (slash == std::string_view::npos) return Id(resource, "", key);
  return Id(resource, key.substr(0, slash), key.substr(slash + 1));
}

void AddClaims(const corev1::Pod& pod, std::set<std::string>& out) {
  const std::string& ns = pod.metadata().namespace_();
  auto add = [&](const std::string& name) {
    if (!name.empty()) out.insert(Id("resourceclaims", ns, name));
  };
  for (const corev1::PodResourceClaim& claim : pod.spec().resource_claims()) add(claim.resource_claim_name());
  for (const auto& status : pod.status().resource_claim_statuses()) add(status.resource_claim_name());
  add(pod.status().extended_resource_claim_status().resource_claim_name());
}

std::vector<std::string> ObjectsOf(const corev1::Pod& pod) {
  const std::string& ns = pod.metadata().namespace_();
  std::set<std::string> out;
  out.insert(Id("pods", ns, pod.metadata().name()));
  // A node creates mirror pods itself, so they must not grant it access.
  if (k8s::IsMirror(pod)) return {out.begin(), out.end()};
  if (!pod.spec().service_account_name().empty()) {
    out.insert(Id("serviceaccounts", ns, pod.spec().service_account_name()));
  }
  for (const std::string& name : k8s::ReferencedSecrets(pod.spec())) out.insert(Id("secrets", ns, name));
  for (const std::string& name : k8s::ReferencedConfigMaps(pod.spec())) {
    out.insert(Id("configmaps", ns, name));
  }
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    const corev1::VolumeSource& source = volume.volume_source();
    if (source.has_persistent_volume_claim()) {
      out.insert(Id("persistentvolumeclaims", ns, source.persistent_volume_claim().claim_name()));
    } else if (source.has_ephemeral()) {
      out.insert(Id("persistentvolumeclaims", ns, pod.metadata().name() + "-" + volume.name()));
    }
  }
  AddClaims(pod, out);
  return {out.begin(), out.end()};
}

// Secrets of a volume that the kubelet reads; controllers' secrets are excluded.
std::vector<std::string> SecretsOf(const corev1::PersistentVolume& volume) {
  const auto& source = volume.spec().persistent_volume_source();
  const std::string& claim_ns = volume.spec().claim_ref().namespace_();
  std::set<std::string> out;
  auto add = [&](const std::string& ns, const std::string& name) {
    if (!name.empty()) out.insert(Id("secrets", ns.empty() ? claim_ns : ns, name));
  };
  auto add_ref = [&](const auto& reference) { add(reference.namespace_(), reference.name()); };
  add(source.azure_file().secret_namespace(), source.azure_file().secret_name());
  add_ref(source.cephfs().secret_ref());
  add_ref(source.flex_volume().secret_ref());
  add_ref(source.rbd().secret_ref());
  add_ref(source.scale_io().secret_ref());
  add_ref(source.iscsi().secret_ref());
  add_ref(source.storageos().secret_ref());
  add_ref(source.csi().node_stage_secret_ref());
  add_ref(source.csi().node_publish_secret_ref());
  add_ref(source.csi().node_expand_secret_ref());
  return {out.begin(), out.end()};
}

void Count(std::unordered_map<std::string, std::unordered_map<std::string, int>>& all,
           const std::string& object, const std::string& to, int by) {
  auto& counts = all[object];
  if ((counts[to] += by) <= 0) counts.erase(to);
  if (counts.empty()) all.erase(object);
}

}  // namespace

void NodeGraph::Forget(const std::string& id) {
  auto it = sources_.find(id);
  if (it == sources_.end()) return;
  const Source& source = it->second;
  for (const std::string& object : source.objects) {
    if (source.node.empty()) {
      Count(links_, object, source.to, -1);
    } else {
      Count(nodes_, object, source.node, -1);
    }
  }
  sources_.erase(it);
}

void NodeGraph::Replace(std::string id, Source source) {
  MutexLock lock(mutex_);
  auto it = sources_.find(id);
  // Most pod updates change no edges.
  if (it != sources_.end() && it->second.node == source.node && it->second.to == source.to &&
      it->second.objects == source.objects) {
    return;
  }
  Forget(id);
  if (source.objects.empty() || (source.node.empty() && source.to.empty())) return;
  for (const std::string& object : source.objects) {
    if (source.node.empty()) {
      Count(links_, object, source.to, 1);
    } else {
      Count(nodes_, object, source.node, 1);
    }
  }
  sources_.emplace(std::move(id), std::move(source));
}

void NodeGraph::Put(const corev1::Pod& pod) {
  Source source;
  source.node = pod.spec().node_name();
  if (!source.node.empty()) source.objects = ObjectsOf(pod);
  Replace(Id("pods", pod.metadata().namespace_(), pod.metadata().name()), std::move(source));
}

void NodeGraph::Put(const corev1::PersistentVolume& volume) {
  const std::string id = Id("persistentvolumes", "", volume.metadata().name());
  Source secrets, claim;
  if (volume.spec().has_claim_ref()) {
    const corev1::ObjectReference& reference = volume.spec().claim_ref();
    claim.to = Id("persistentvolumeclaims", reference.namespace_(), reference.name());
    claim.objects = {id};
    secrets.to = id;
    secrets.objects = SecretsOf(volume);
  }
  Replace(id, std::move(claim));
  Replace(id + "/secrets", std::move(secrets));
}

void NodeGraph::Put(const api::storage::v1::VolumeAttachment& attachment) {
  std::string id = Id("volumeattachments", "", attachment.metadata().name());
  Replace(id, {attachment.spec().node_name(), "", {id}});
}

void NodeGraph::Put(const api::resource::v1::ResourceSlice& slice) {
  std::string id = Id("resourceslices", "", slice.metadata().name());
  Replace(id, {slice.spec().node_name(), "", {id}});
}

void NodeGraph::Put(const api::certificates::v1beta1::PodCertificateRequest& request) {
  std::string id = Id("podcertificaterequests", request.metadata().namespace_(), request.metadata().name());
  Replace(id, {request.spec().node_name(), "", {id}});
}

void NodeGraph::Remove(std::string_view resource, std::string_view key) {
  std::string id = IdOfKey(resource, key);
  MutexLock lock(mutex_);
  Forget(id);
  Forget(id + "/secrets");
}

bool NodeGraph::Reaches(const std::string& object, const std::string& node, int depth) const {
  auto nodes = nodes_.find(object);
  if (nodes != nodes_.end() && nodes->second.count(node)) return true;
  if (depth == 0) return false;
  auto links = links_.find(object);
  if (links == links_.end()) return false;
  for (const auto& link : links->second) {
    if (Reaches(link.first, node, depth - 1)) return true;
  }
  return false;
}

bool NodeGraph::Related(std::string_view node, std::string_view resource, std::string_view ns,
                        std::string_view name) const {
  MutexLock lock(mutex_);
  return Reaches(Id(resource, ns, name), std::string(node), kDepth);
}

}  // namespace keelson::apiserver
